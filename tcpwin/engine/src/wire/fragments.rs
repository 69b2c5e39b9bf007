//! Minimal IP reassembly (RFC 791 §3.2, RFC 8200 §4.5): tracks which bytes of a datagram were sent, and stores the
//! first. This is enough for the inner headers and the total length; the payload is never stored. Where fragments
//! overlap, the first one wins. Bounded in datagrams, in runs per datagram and in time.

use std::collections::{HashMap, VecDeque};

use super::ip_facts::IpFacts;
use super::view::{View, TCP};

const MAX_DATAGRAMS: usize = 1024;
/// Separate byte runs that a datagram may have before further fragments are ignored.
const MAX_RUNS: usize = 64;
/// Frame numbers stored per datagram.
const MAX_FRAMES: usize = 256;
/// Space for tunnel headers and the TCP header inside.
const PREFIX_LEN: usize = 256;
/// The longest payload of a non-jumbo datagram; jumbograms cannot be fragmented (RFC 2675 §3).
const MAX_PAYLOAD_LEN: u32 = 65_535;
/// Linux's ipfrag_time: the lifetime of an incomplete datagram.
const MAX_AGE_NS: i64 = 30_000_000_000;

pub(super) struct Fragment<'a> {
    pub frame: u64,
    pub protocol: u8,
    pub id: u32,
    /// Offset in the datagram's payload, in bytes.
    pub offset: u32,
    pub more: bool,
    pub payload: View<'a>,
}

/// The stored prefix of a complete datagram's payload.
pub(super) struct Rebuilt {
    prefix: [u8; PREFIX_LEN],
    captured_len: usize,
    wire_len: usize,
    pub protocol: u8,
    pub ttl: u8,
}

impl Rebuilt {
    pub fn view(&self) -> View<'_> {
        View::new(
            self.prefix.get(..self.captured_len).unwrap_or(&[]),
            self.wire_len,
        )
    }
}

/// RFC 791 §3.2 identifies a datagram by addresses, protocol and identification; RFC 8200 §4.5 does not use the
/// protocol, which is 0 here for IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    src: [u8; 16],
    dst: [u8; 16],
    id: u32,
    protocol: u8,
    version: u8,
}

struct Datagram {
    serial: u64,
    first_time_ns: i64,
    /// Disjoint, non-adjacent, ascending runs [start, end) of payload bytes seen on the wire.
    runs: Vec<(u32, u32)>,
    /// Known once the last fragment has arrived.
    total_len: Option<u32>,
    prefix: [u8; PREFIX_LEN],
    /// One bit for each captured byte of `prefix`.
    present: [u64; PREFIX_LEN / 64],
    protocol: u8,
    ttl: u8,
    /// Frame numbers of the fragments.
    frames: Vec<u64>,
}

/// The incomplete datagrams of a capture.
#[derive(Default)]
pub(super) struct FragmentTable {
    datagrams: HashMap<Key, Datagram>,
    /// Keys by age, oldest first; an entry whose serial differs from its datagram's is stale.
    ages: VecDeque<(Key, u64)>,
    next_serial: u64,
    abandoned: u64,
    added: u64,
    /// Frame numbers of the latest completed datagram.
    completed: Vec<u64>,
}

impl FragmentTable {
    /// Add a fragment; return the datagram if this completes it.
    pub fn add(&mut self, ip: &IpFacts, fragment: &Fragment<'_>, now_ns: i64) -> Option<Rebuilt> {
        let protocol = if ip.version == 4 {
            fragment.protocol
        } else {
            0
        };
        let key = Key {
            src: ip.src,
            dst: ip.dst,
            id: fragment.id,
            protocol,
            version: ip.version,
        };
        self.added += 1;
        self.drop_old(now_ns);
        if !self.datagrams.contains_key(&key) {
            self.open(key, fragment.protocol, now_ns);
        }
        let datagram = self.datagrams.get_mut(&key)?;
        datagram.take(fragment, ip.ttl);
        if datagram.frames.len() < MAX_FRAMES {
            datagram.frames.push(fragment.frame);
        }
        let total_len = datagram.total_len?;
        if datagram.runs.first() != Some(&(0, total_len)) {
            return None;
        }
        let mut datagram = self.datagrams.remove(&key)?;
        self.completed = std::mem::take(&mut datagram.frames);
        Some(Rebuilt {
            captured_len: datagram.captured_len(),
            prefix: datagram.prefix,
            wire_len: usize::try_from(total_len).ok()?,
            protocol: datagram.protocol,
            ttl: datagram.ttl,
        })
    }

    /// Frame numbers of the latest completed datagram's fragments.
    pub fn completed(&self) -> &[u64] {
        &self.completed
    }

    pub fn added(&self) -> u64 {
        self.added
    }

    /// TCP datagrams that were dropped or are still incomplete.
    pub fn incomplete(&self) -> u64 {
        let open = self
            .datagrams
            .values()
            .filter(|datagram| datagram.protocol == TCP)
            .count();
        self.abandoned + open as u64
    }

    fn open(&mut self, key: Key, protocol: u8, now_ns: i64) {
        while self.datagrams.len() >= MAX_DATAGRAMS {
            self.drop_oldest();
        }
        // Stale entries are dropped when they reach the front; this bounds those behind an old incomplete datagram.
        if self.ages.len() >= 2 * MAX_DATAGRAMS {
            let datagrams = &self.datagrams;
            self.ages.retain(|(key, serial)| {
                datagrams
                    .get(key)
                    .is_some_and(|datagram| datagram.serial == *serial)
            });
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.ages.push_back((key, serial));
        self.datagrams.insert(
            key,
            Datagram {
                serial,
                first_time_ns: now_ns,
                runs: Vec::new(),
                total_len: None,
                prefix: [0; PREFIX_LEN],
                present: [0; PREFIX_LEN / 64],
                protocol,
                ttl: 0,
                frames: Vec::new(),
            },
        );
    }

    fn drop_old(&mut self, now_ns: i64) {
        while let Some((key, serial)) = self.ages.front() {
            let live = self
                .datagrams
                .get(key)
                .filter(|datagram| datagram.serial == *serial);
            if live
                .is_some_and(|datagram| now_ns.saturating_sub(datagram.first_time_ns) <= MAX_AGE_NS)
            {
                break;
            }
            self.drop_oldest();
        }
    }

    /// Drop the front of `ages`, and its datagram if it still exists.
    fn drop_oldest(&mut self) {
        let Some((key, serial)) = self.ages.pop_front() else {
            return;
        };
        if self
            .datagrams
            .get(&key)
            .is_some_and(|datagram| datagram.serial == serial)
        {
            if let Some(datagram) = self.datagrams.remove(&key) {
                self.abandoned += u64::from(datagram.protocol == TCP);
            }
        }
    }
}

impl Datagram {
    fn take(&mut self, fragment: &Fragment<'_>, ttl: u8) {
        let Ok(len) = u32::try_from(fragment.payload.wire_len) else {
            return;
        };
        // Like Linux (ip_frag_queue), count all but the last fragment in whole 8-byte units.
        let len = if fragment.more { len & !7 } else { len };
        let (start, end) = (fragment.offset, fragment.offset.saturating_add(len));
        if end > MAX_PAYLOAD_LEN {
            return;
        }
        let past_the_end = self.total_len.is_some_and(|total| end > total);
        let last_seen = self.runs.last().map_or(0, |run| run.1);
        let ends_early = !fragment.more && end < last_seen;
        if len == 0 || past_the_end || ends_early || !self.add_run(start, end) {
            return;
        }
        if !fragment.more {
            self.total_len = Some(end);
        }
        if start == 0 && self.present[0] & 1 == 0 {
            self.ttl = ttl;
            // RFC 8200 §4.5: the first fragment's next header is used.
            self.protocol = fragment.protocol;
        }
        let prefix = fragment.payload.limit(len as usize).bytes;
        for (at, &byte) in (start as usize..PREFIX_LEN).zip(prefix) {
            let (word, bit) = (at / 64, 1 << (at % 64));
            if self.present[word] & bit == 0 {
                self.present[word] |= bit;
                self.prefix[at] = byte;
            }
        }
    }

    /// Merge [start, end) into the runs; false if there is no space for another run.
    fn add_run(&mut self, start: u32, end: u32) -> bool {
        let first = self.runs.partition_point(|run| run.1 < start);
        let after = self.runs.partition_point(|run| run.0 <= end);
        if first == after {
            if self.runs.len() >= MAX_RUNS {
                return false;
            }
            self.runs.insert(first, (start, end));
            return true;
        }
        let joined = self
            .runs
            .drain(first..after)
            .fold((start, end), |all, run| {
                (all.0.min(run.0), all.1.max(run.1))
            });
        self.runs.insert(first, joined);
        true
    }

    /// Length of the captured part of `prefix` before the first gap.
    fn captured_len(&self) -> usize {
        let mut len = 0;
        for word in self.present {
            len += word.trailing_ones() as usize;
            if word != u64::MAX {
                break;
            }
        }
        len
    }
}
