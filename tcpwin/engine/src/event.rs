//! The names of what can happen at a segment, in the fixed order of the `events` column.

/// A set of events at one segment, as bits in the order of [`NAMES`].
pub type Events = u32;

pub const NAMES: [&str; 28] = [
    "zero_window",
    "window_full",
    "window_update",
    "zero_window_probe",
    "zero_window_probe_ack",
    "keep_alive",
    "keep_alive_ack",
    "duplicate_ack",
    "out_of_order",
    "previous_segment_missing",
    "acked_unseen",
    "retransmission",
    "fast_retransmission",
    "rto_retransmission",
    "tail_loss_probe",
    "spurious_retransmission",
    "syn_retransmission",
    "capture_duplicate",
    "window_shrink",
    "sub_mss_window",
    "idle_restart",
    "dsack",
    "partial_ack",
    "delayed_ack",
    "capture_reordered",
    "recovery_retransmission",
    "go_back_n",
    "lost_retransmission",
];

pub const ZERO_WINDOW: Events = 1;
pub const WINDOW_FULL: Events = 1 << 1;
pub const WINDOW_UPDATE: Events = 1 << 2;
pub const ZERO_WINDOW_PROBE: Events = 1 << 3;
pub const ZERO_WINDOW_PROBE_ACK: Events = 1 << 4;
pub const KEEP_ALIVE: Events = 1 << 5;
pub const KEEP_ALIVE_ACK: Events = 1 << 6;
pub const DUPLICATE_ACK: Events = 1 << 7;
pub const OUT_OF_ORDER: Events = 1 << 8;
pub const PREVIOUS_SEGMENT_MISSING: Events = 1 << 9;
pub const ACKED_UNSEEN: Events = 1 << 10;
pub const RETRANSMISSION: Events = 1 << 11;
pub const FAST_RETRANSMISSION: Events = 1 << 12;
pub const RTO_RETRANSMISSION: Events = 1 << 13;
pub const TAIL_LOSS_PROBE: Events = 1 << 14;
pub const SPURIOUS_RETRANSMISSION: Events = 1 << 15;
pub const SYN_RETRANSMISSION: Events = 1 << 16;
pub const CAPTURE_DUPLICATE: Events = 1 << 17;
pub const WINDOW_SHRINK: Events = 1 << 18;
pub const SUB_MSS_WINDOW: Events = 1 << 19;
pub const IDLE_RESTART: Events = 1 << 20;
pub const DSACK: Events = 1 << 21;
pub const PARTIAL_ACK: Events = 1 << 22;
pub const DELAYED_ACK: Events = 1 << 23;
pub const CAPTURE_REORDERED: Events = 1 << 24;
/// These three only accompany a plain retransmission.
pub const RECOVERY_RETRANSMISSION: Events = 1 << 25;
pub const GO_BACK_N: Events = 1 << 26;
pub const LOST_RETRANSMISSION: Events = 1 << 27;

/// Every kind of resent data.
pub const RESENT: Events = RETRANSMISSION
    | FAST_RETRANSMISSION
    | RTO_RETRANSMISSION
    | TAIL_LOSS_PROBE
    | SPURIOUS_RETRANSMISSION;

/// What a resent segment is, with the qualifiers of a plain retransmission.
pub const MAIN_KINDS: Events =
    RESENT | SYN_RETRANSMISSION | RECOVERY_RETRANSMISSION | GO_BACK_N | LOST_RETRANSMISSION;

/// Those that come with evidence of their cause.
pub const WITH_EVIDENCE: Events = RESENT | OUT_OF_ORDER | CAPTURE_REORDERED;

/// How often each event happened.
pub type Counts = [u32; NAMES.len()];

/// Add one to the count of each event in the set.
pub fn count(counts: &mut Counts, mut events: Events) {
    while events != 0 {
        let position = events.trailing_zeros() as usize;
        if let Some(count) = counts.get_mut(position) {
            *count = count.saturating_add(1);
        }
        events &= events - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_bits() {
        for (bit, name) in [
            (ZERO_WINDOW, "zero_window"),
            (KEEP_ALIVE, "keep_alive"),
            (ACKED_UNSEEN, "acked_unseen"),
            (SPURIOUS_RETRANSMISSION, "spurious_retransmission"),
            (CAPTURE_DUPLICATE, "capture_duplicate"),
            (IDLE_RESTART, "idle_restart"),
            (LOST_RETRANSMISSION, "lost_retransmission"),
        ] {
            assert_eq!(NAMES[bit.trailing_zeros() as usize], name);
        }
        let mut counts = Counts::default();
        count(&mut counts, ZERO_WINDOW | IDLE_RESTART);
        assert_eq!(
            (counts[0], counts[20], counts.iter().sum::<u32>()),
            (1, 1, 2)
        );
    }
}
