//! Differences between the two sightings of a packet, beyond what every router changes.

use super::packet::Sighting;
use crate::wire::{Options, PSH, SYN};

/// A field that was changed on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Mss,
    WindowScale,
    SackPermitted,
    /// The option was removed, or its values differ.
    Timestamps,
    SackBlocks,
    Window,
    Dscp,
    Ecn,
    /// Congestion experienced, legitimately set by a router (RFC 3168 §5).
    CongestionMark,
    Flags,
    IpId,
}

impl Field {
    pub const ALL: [Field; 11] = [
        Field::Mss,
        Field::WindowScale,
        Field::SackPermitted,
        Field::Timestamps,
        Field::SackBlocks,
        Field::Window,
        Field::Dscp,
        Field::Ecn,
        Field::CongestionMark,
        Field::Flags,
        Field::IpId,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Field::Mss => "mss",
            Field::WindowScale => "window_scale",
            Field::SackPermitted => "sack_permitted",
            Field::Timestamps => "timestamps",
            Field::SackBlocks => "sack_blocks",
            Field::Window => "window",
            Field::Dscp => "dscp",
            Field::Ecn => "ecn",
            Field::CongestionMark => "congestion_mark",
            Field::Flags => "flags",
            Field::IpId => "ip_id",
        }
    }
}

/// A changed field, and the first packet with the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub field: Field,
    /// Number of packets.
    pub count: u64,
    /// Frames of the first packet in captures A and B.
    pub frames: [u64; 2],
    /// Values at the near and far point in the first packet; `None` if the field was absent.
    pub near: Option<i64>,
    pub far: Option<i64>,
}

const ECN_BITS: u8 = 3;
const NOT_ECT: u8 = 0;
const CONGESTION_EXPERIENCED: u8 = 3;

/// Report every field in which two sightings differ. `is_whole`: neither is a part of the other.
#[inline]
pub fn compare(
    near: &Sighting,
    far: &Sighting,
    is_whole: bool,
    mut note: impl FnMut(Field, Option<i64>, Option<i64>),
) {
    if near.traffic_class != far.traffic_class {
        traffic_class(near.traffic_class, far.traffic_class, &mut note);
    }
    let timestamps = |packet: &Sighting| packet.has_timestamps.then_some(i64::from(packet.tsval));
    // Options cut off by a capture were not removed on the path.
    let has_options = near.has_all_options && far.has_all_options;
    if has_options && timestamps(near) != timestamps(far) {
        note(Field::Timestamps, timestamps(near), timestamps(far));
    }
    if is_whole {
        if near.window != far.window {
            let window = |packet: &Sighting| Some(i64::from(packet.window));
            note(Field::Window, window(near), window(far));
        }
        let flags = |packet: &Sighting| packet.flags & !PSH;
        if flags(near) != flags(far) {
            let value = |packet| Some(i64::from(flags(packet)));
            note(Field::Flags, value(near), value(far));
        }
        if near.ip_id != far.ip_id {
            let value = |packet: &Sighting| packet.id().map(i64::from);
            note(Field::IpId, value(near), value(far));
        }
    }
    if has_options && (near.options.is_some() || far.options.is_some()) {
        options(near, far, &mut note);
    }
}

#[cold]
fn traffic_class(near: u8, far: u8, note: &mut impl FnMut(Field, Option<i64>, Option<i64>)) {
    let value = |bits: u8| Some(i64::from(bits));
    if near >> 2 != far >> 2 {
        note(Field::Dscp, value(near >> 2), value(far >> 2));
    }
    let (before, after) = (near & ECN_BITS, far & ECN_BITS);
    if before != after {
        let field = if after == CONGESTION_EXPERIENCED && before != NOT_ECT {
            Field::CongestionMark
        } else {
            Field::Ecn
        };
        note(field, value(before), value(after));
    }
}

#[cold]
fn options(
    near: &Sighting,
    far: &Sighting,
    note: &mut impl FnMut(Field, Option<i64>, Option<i64>),
) {
    let none = Options::default();
    let before = near.options.as_deref().unwrap_or(&none);
    let after = far.options.as_deref().unwrap_or(&none);
    if near.has(SYN) {
        let number = |value: Option<u16>| value.map(i64::from);
        if before.mss != after.mss {
            note(Field::Mss, number(before.mss), number(after.mss));
        }
        if before.window_scale != after.window_scale {
            let shift = |options: &Options| options.window_scale.map(i64::from);
            note(Field::WindowScale, shift(before), shift(after));
        }
        if before.sack_permitted != after.sack_permitted {
            let there = |options: &Options| options.sack_permitted.then_some(1);
            note(Field::SackPermitted, there(before), there(after));
        }
    }
    if before.sack_blocks() != after.sack_blocks() {
        let edge = |options: &Options| {
            options
                .sack_blocks()
                .first()
                .map(|block| i64::from(block.0))
        };
        note(Field::SackBlocks, edge(before), edge(after));
    }
}

/// Merge a change into those recorded for a direction.
pub fn note(changes: &mut Vec<Change>, change: Change) {
    match changes.iter_mut().find(|known| known.field == change.field) {
        Some(known) => known.count += 1,
        None => changes.push(change),
    }
}
