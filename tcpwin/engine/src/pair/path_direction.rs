//! A direction of a paired connection: waiting packets, the fields that pass unchanged, and the packets' fates.

use std::collections::VecDeque;

use super::altered::Change;
use super::by_sequence::BySequence;
use super::keys::{words, Seed};
use super::packet::{Side, Sighting};
use super::resent::{Open, ResendCause};
use super::tally::{Delays, Fate, Tally};
use super::waiting::{List, NONE};
use crate::sequence::Seq;
use crate::tcp::recovery::ranges::RangeSet;
use crate::wire::ACK;

/// Newest arrivals whose keys are stored, to recognize duplicates.
const ARRIVALS: usize = 256;
/// Payload of a segment if no MSS was seen: Ethernet, IPv4.
const USUAL_MSS: u32 = 1_460;
/// The timestamps option with padding (RFC 7323 appendix A), which the MSS does not include (RFC 6691).
const TIMESTAMPS_LEN: u32 = 12;
/// Segments do not exceed an Ethernet jumbo frame.
const MAX_JUMBO: u32 = 9_000;
/// Maximum number of arrived but unacknowledged data packets stored: twice the largest window (RFC 7323 §2.2), in segments.
const MAX_ARRIVED: usize = 1 << 20;
/// Ranges beyond the acknowledgment that are stored.
const MAX_SACKED: usize = 1 << 16;
/// Number of mismatches without a match after which a field is known to be rewritten.
const MAX_DISAGREEMENTS: u8 = 4;
const SLACK_NS: i64 = 1_000_000;
/// Number of lost packets whose frames are stored as examples.
pub const MAX_LOST_FRAMES: usize = 64;

/// Whether a field passes unchanged, so that it can distinguish packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldStability {
    agreed: u8,
    disagreed: u8,
    is_changed: bool,
}

impl FieldStability {
    #[inline]
    pub fn holds(self) -> bool {
        !self.is_changed
    }

    pub fn agree(&mut self) {
        self.agreed = self.agreed.saturating_add(1);
    }

    pub fn is_open(self) -> bool {
        !self.is_changed && self.agreed == 0
    }

    /// Record a mismatch. Return true if this settles that the field is rewritten.
    pub fn disagree(&mut self, is_proof: bool) -> bool {
        self.disagreed = self.disagreed.saturating_add(1);
        self.is_changed = is_proof || self.disagreed >= MAX_DISAGREEMENTS;
        self.is_changed
    }
}

/// IP IDs of a sender that counts its packets: a gap is a packet that was not captured.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdCount {
    next: Option<u16>,
    /// Packets counted by the IDs since the first captured one.
    counted: i64,
    captured: i64,
    /// Packets in the gaps that the other capture has.
    filled: i64,
    in_order: u64,
    disagreed: u64,
}

impl IdCount {
    const MAX_MISSING: u16 = 1_024;

    pub fn note(&mut self, id: u32, segments: u32) {
        let id = id as u16;
        let ahead = self.next.map_or(0, |next| id.wrapping_sub(next));
        let behind = ahead.wrapping_neg();
        self.captured += i64::from(segments);
        if behind != 0 && behind <= Self::MAX_MISSING {
            // A packet that was skipped before.
            self.in_order += 1;
            return;
        }
        let passed = if ahead < Self::MAX_MISSING {
            self.in_order += 1;
            ahead
        } else {
            self.disagreed += 1;
            0
        };
        self.counted += i64::from(passed) + i64::from(segments);
        self.next = Some(id.wrapping_add(segments as u16));
    }

    /// Return the position in the count of a packet that the near capture lacks.
    pub fn place(&self, id: u32) -> Option<i64> {
        let ahead = (id as u16).wrapping_sub(self.next?) as i16;
        Some(self.counted + i64::from(ahead))
    }

    /// Record that the packet at this position was found in the other capture.
    pub fn fill(&mut self, place: i64) {
        self.filled += i64::from((0..self.counted).contains(&place));
    }

    /// Return the number of packets that were sent but are in neither capture; `None` if the sender does not count.
    pub fn missing(&self) -> Option<u64> {
        let missing = (self.counted - self.captured - self.filled).max(0);
        (self.in_order >= 20 * self.disagreed).then_some(missing as u64)
    }
}

/// A waiting frame that is longer than a segment, or that arrived in parts.
#[derive(Debug)]
pub struct Parts {
    pub handle: (u32, u32),
    /// Ranges not shown by the other capture.
    pub open: Vec<(Seq, Seq)>,
    /// Payload of each segment in it except the last; 0 if unknown.
    pub part_len: u32,
}

impl Parts {
    pub fn open_bytes(&self) -> u32 {
        let lens = self.open.iter().map(|range| range.0.to(range.1) as u32);
        lens.sum()
    }
}

/// ACKs that only their contents distinguish: a match is certain only if the contents are unique.
#[derive(Debug, Default)]
pub struct BareAcks {
    /// Contents of the newest ACK, by capture.
    newest: [Option<u64>; 2],
    /// Contents that recently occurred more than once at the near point.
    repeated: VecDeque<u64>,
    /// The newest paired ACK, until the far capture has passed it.
    pub paired: Option<Paired>,
}

/// A paired ACK and its times.
#[derive(Clone, Copy, Debug)]
pub struct Paired {
    pub said: u64,
    pub ack: Seq,
    pub near_ns: i64,
    pub far_ns: i64,
}

impl BareAcks {
    /// Process an ACK that passes a point. Return a paired one that neither capture repeats.
    pub fn note(&mut self, side: Side, near: Side, said: u64, ack: Seq) -> Option<Paired> {
        let is_repeated = self.newest[side.index()].replace(said) == Some(said);
        if is_repeated && side == near && self.repeated.back() != Some(&said) {
            if self.repeated.len() >= ARRIVALS {
                self.repeated.pop_front();
            }
            self.repeated.push_back(said);
        }
        let paired = self.paired?;
        if is_repeated && paired.said == said {
            self.paired = None;
        } else if side != near && paired.ack.is_before(ack) {
            self.paired = None;
            return (!self.repeated.contains(&paired.said)).then_some(paired);
        }
        None
    }
}

/// Data at the far point.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    frame: u64,
    time_ns: i64,
}

/// Data at the far point that no cumulative acknowledgment covered on arrival.
#[derive(Debug)]
struct Arrivals {
    /// New data, each byte once, in the order of its bytes.
    new: VecDeque<(Seq, Seq, Arrived)>,
    /// Data that came after later data.
    late: BySequence<Arrived>,
    count: u32,
}

/// A direction of a pair.
#[derive(Debug)]
pub struct PathDirection {
    /// The point that its packets pass first.
    pub near: Side,
    /// Indexed by capture.
    pub lists: [List; 2],
    /// First packet waiting at the near point that was not overtaken.
    pub fresh: u32,
    /// Capture B's sequence numbers minus capture A's.
    pub shift: u32,
    pub id: FieldStability,
    pub timestamp: FieldStability,
    pub ids: IdCount,
    /// Indexed by capture.
    pub parts: [VecDeque<Parts>; 2],
    /// Whether frames shorter than a full segment may contain several: GRO merged an application's small writes.
    pub is_mixed: bool,
    /// Payload of the segments in the newest such frame; 0 if unknown.
    pub short_len: u32,
    /// Payload of a full segment; 0 if unknown.
    pub segment_len: u32,
    /// MSS options of the sender and the receiver, the smaller value of both captures; 0 if absent.
    mss: [u32; 2],
    /// Whether the newest data has timestamps.
    is_stamped: bool,
    /// Whether the captures framed the bytes differently.
    pub is_resegmented: bool,
    arrivals: VecDeque<u64>,
    pub bare_acks: BareAcks,
    /// Highest acknowledgment number in this direction, by capture.
    newest_acks: [Option<Seq>; 2],
    /// End of the highest byte that left.
    pub sent_end: Option<Seq>,
    /// The receiver's highest acknowledgment, and the ranges it has beyond.
    pub acked: Option<Seq>,
    pub sacked: RangeSet<MAX_SACKED>,
    /// The highest acknowledgment that reached the near point.
    pub acked_at_near: Option<Seq>,
    /// Whether SACK blocks in this direction arrive unchanged.
    pub keeps_sack: bool,
    /// Whether the receiver sends SACK blocks.
    pub has_sack: bool,
    /// Whether the sender's SYN permits SACK.
    pub offers_sack: bool,
    /// Waiting data by sequence number, by capture; only since something was first looked up in it.
    pub by_sequence: [Option<BySequence<()>>; 2],
    /// Overtaken data that the receiver has reported, but that is not known to have arrived.
    pub reported: Vec<(u32, u32)>,
    pub tally: Tally,
    pub delays: Delays,
    /// Frames of the first packets that the receiver lacked, and of those that the far capture lacks.
    pub lost_frames: Vec<u64>,
    pub unseen_frames: Vec<u64>,
    /// Delays of the packets preceding lost ones.
    pub delays_before_loss: Delays,
    pub changes: Vec<Change>,
    /// Packets with a change.
    pub altered: u64,
    /// Frames in captures A and B of the first packet with both sightings.
    pub first_frames: Option<[u64; 2]>,
    pub hops: Option<(i16, i16)>,
    /// Far minus near time of the newest paired packet.
    pub newest_apart_ns: i64,
    /// Minimum and maximum differences so far.
    pub most_apart_ns: i64,
    pub least_apart_ns: i64,
    /// Epoch of that packet.
    pub epoch: u32,
    pub far_ttl: u8,
    /// When the receiver's latest new acknowledgment left, by the far capture's clock.
    pub news_ns: i64,
    /// Data packets that only the far capture has, those of them retransmitted, and those lost and retransmitted.
    pub far_alone: u64,
    pub far_alone_resent: u64,
    pub lost_resent: u64,
    pub resent: u64,
    pub resent_by_cause: [u64; ResendCause::ALL.len()],
    /// Retransmissions whose cause an ACK may still determine.
    pub open_resent: VecDeque<Open>,
    arrived: Arrivals,
    /// When the receiver's newest ACK left, by the far capture's clock.
    pub last_ack_ns: i64,
    /// Whether the receiver lacked bytes that had arrived: it dropped them itself.
    pub refuses: bool,
}

impl PathDirection {
    pub fn new(near: Side, shift: u32) -> Self {
        Self {
            near,
            lists: [List::EMPTY; 2],
            fresh: NONE,
            shift,
            id: FieldStability::default(),
            timestamp: FieldStability::default(),
            ids: IdCount::default(),
            parts: [VecDeque::new(), VecDeque::new()],
            is_mixed: false,
            short_len: 0,
            segment_len: 0,
            mss: [0; 2],
            is_stamped: true,
            is_resegmented: false,
            arrivals: VecDeque::new(),
            bare_acks: BareAcks::default(),
            newest_acks: [None; 2],
            sent_end: None,
            acked: None,
            sacked: RangeSet::default(),
            acked_at_near: None,
            keeps_sack: false,
            has_sack: false,
            offers_sack: false,
            by_sequence: [None, None],
            reported: Vec::new(),
            tally: Tally::default(),
            delays: Delays::default(),
            lost_frames: Vec::new(),
            unseen_frames: Vec::new(),
            delays_before_loss: Delays::default(),
            changes: Vec::new(),
            altered: 0,
            first_frames: None,
            hops: None,
            newest_apart_ns: 0,
            most_apart_ns: i64::MIN,
            least_apart_ns: i64::MAX,
            epoch: 0,
            far_ttl: 0,
            news_ns: i64::MIN,
            far_alone: 0,
            far_alone_resent: 0,
            lost_resent: 0,
            resent: 0,
            resent_by_cause: [0; ResendCause::ALL.len()],
            open_resent: VecDeque::new(),
            arrived: Arrivals {
                new: VecDeque::new(),
                late: BySequence::new(),
                count: 0,
            },
            last_ack_ns: i64::MIN,
            refuses: false,
        }
    }

    pub fn far(&self) -> Side {
        self.near.other()
    }

    /// Record the clock difference of the newest paired packet.
    #[inline]
    pub fn note_apart(&mut self, epoch: u32, apart_ns: i64) {
        if epoch < self.epoch {
            return;
        }
        if epoch > self.epoch {
            (self.most_apart_ns, self.least_apart_ns) = (apart_ns, apart_ns);
            self.epoch = epoch;
        }
        self.newest_apart_ns = apart_ns;
        self.most_apart_ns = self.most_apart_ns.max(apart_ns);
        self.least_apart_ns = self.least_apart_ns.min(apart_ns);
    }

    /// Return far minus near time from which a packet is overdue, allowing for reordering on the path and in files.
    pub fn patience_ns(&self) -> i64 {
        if self.most_apart_ns == i64::MIN {
            return i64::MAX;
        }
        let range_ns = self.most_apart_ns.saturating_sub(self.least_apart_ns);
        self.most_apart_ns.saturating_add(range_ns / 4 + SLACK_NS)
    }

    /// Return the key shared by both sightings of a packet, including the direction and the capture where it waits.
    #[inline]
    pub fn key(&self, seed: &Seed, direction: u32, side: Side, packet: &Sighting) -> u64 {
        self.key_at(seed, direction, side, packet, packet.seq, packet.ip_id)
    }

    /// Return the key shared by a second sighting at the far point and the first.
    #[inline]
    pub fn arrival_key(&self, seed: &Seed, direction: u32, packet: &Sighting) -> u64 {
        let key = self.key(seed, direction, self.far(), packet);
        if packet.is_bare_ack() {
            key ^ packet.said(seed)
        } else {
            key
        }
    }

    /// Return the key of a part of a packet.
    #[inline]
    pub fn key_at(
        &self,
        seed: &Seed,
        direction: u32,
        side: Side,
        packet: &Sighting,
        seq: u32,
        ip_id: u32,
    ) -> u64 {
        let tsval = if self.timestamp.holds() {
            packet.tsval
        } else {
            0
        };
        let id = if self.id.holds() { ip_id } else { 0 };
        let place = u64::from(direction) << 1 | side as u64;
        seed.hash(words(seq, packet.ack), words(tsval, id), place)
    }

    /// Return true if two packets with the same key and length may be the same.
    #[inline]
    pub fn is_same(&self, one: &Sighting, other: &Sighting) -> bool {
        one.seq == other.seq
            && one.ack == other.ack
            && one.payload_len == other.payload_len
            && one.kind() == other.kind()
            && (!self.id.holds() || one.ip_id == other.ip_id)
            && (!self.timestamp.holds() || one.tsval == other.tsval)
    }

    /// Return true if the invariant fields distinguish two packets with the same bytes.
    pub fn distinguishes(&self, packet: &Sighting) -> bool {
        self.id.holds() && packet.id().is_some() || self.timestamp.holds() && packet.has_timestamps
    }

    /// Return true if a packet acknowledges more than earlier ones in its capture.
    #[inline]
    pub fn note_newest_ack(&mut self, side: Side, packet: &Sighting) -> bool {
        if !packet.has(ACK) {
            return false;
        }
        let ack = Seq(packet.ack);
        let newest = &mut self.newest_acks[side.index()];
        let before = *newest;
        if before.is_none_or(|before| before.is_before(ack)) {
            *newest = Some(ack);
        }
        before.is_some_and(|before| before.is_before(ack))
    }

    /// Store the frame of a packet that may be counted as lost.
    pub fn note_lost(&mut self, fate: Fate, frame: u64) {
        let frames = match fate {
            Fate::Lost => &mut self.lost_frames,
            Fate::Unseen => &mut self.unseen_frames,
            _ => return,
        };
        if frames.len() < MAX_LOST_FRAMES {
            frames.push(frame);
        }
    }

    pub fn note_arrival(&mut self, key: u64) {
        if self.arrivals.len() >= ARRIVALS {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(key);
    }

    /// Record the arrival of data at the far point until it is acknowledged.
    #[inline]
    pub fn note_data_at_far(&mut self, packet: &Sighting) {
        let acked = self.acked;
        let arrived = &mut self.arrived;
        let is_old = |end: Seq| acked.is_some_and(|acked| !acked.is_before(end));
        while arrived.new.front().is_some_and(|each| is_old(each.1)) {
            arrived.new.pop_front();
        }
        if arrived.new.len() + arrived.late.len() >= MAX_ARRIVED {
            return;
        }
        let came = Arrived {
            frame: packet.frame,
            time_ns: packet.time_ns,
        };
        let (start, end) = (packet.start(), packet.end());
        if arrived
            .new
            .back()
            .is_none_or(|newest| !start.is_before(newest.1))
        {
            arrived.new.push_back((start, end, came));
            return;
        }
        if let Some(acked) = acked {
            arrived.late.remove_below(acked);
        }
        arrived.count = arrived.count.wrapping_add(1);
        let count = arrived.count;
        arrived
            .late
            .insert(start, packet.sequence_len(), count, came);
    }

    /// Return when a byte last arrived at the far point before a frame of that capture.
    pub fn arrived_ns(&self, byte: Seq, before_frame: u64) -> Option<i64> {
        let Arrivals { new, late, .. } = &self.arrived;
        let at = new.partition_point(|each| !byte.is_before(each.1));
        let first = new.get(at).filter(|each| !byte.is_before(each.0));
        late.overlapping(byte, byte + 1)
            .map(|(_, came)| came)
            .chain(first.map(|each| each.2))
            .filter(|came| came.frame < before_frame)
            .max_by_key(|came| came.frame)
            .map(|came| came.time_ns)
    }

    pub fn has_arrived(&self, key: u64) -> bool {
        self.arrivals.contains(&key)
    }

    /// Record the MSS option of the sender's or the receiver's SYN.
    pub fn note_mss(&mut self, is_senders: bool, mss: u32) {
        let known = &mut self.mss[usize::from(!is_senders)];
        if *known == 0 || mss < *known {
            *known = mss;
            self.segment_len = self.segment_of(self.least_mss());
        }
    }

    /// Return the smaller known MSS: a host never sends longer segments than the other end accepts, and rarely longer
    /// ones than it accepts itself.
    fn least_mss(&self) -> u32 {
        let known = self.mss.iter().copied().filter(|mss| *mss != 0);
        known.min().unwrap_or(0)
    }

    fn segment_of(&self, mss: u32) -> u32 {
        let options_len = if self.is_stamped { TIMESTAMPS_LEN } else { 0 };
        mss.saturating_sub(options_len)
    }

    /// Learn the size of a full segment from leaving data.
    #[inline]
    pub fn note_segment(&mut self, packet: &Sighting) {
        if packet.has_timestamps != self.is_stamped && packet.has_all_options {
            self.is_stamped = packet.has_timestamps;
            self.segment_len = self.segment_of(self.least_mss());
        }
        let is_full = packet.payload_len > self.segment_len && self.segment_len != 0;
        if is_full && packet.payload_len == self.segment_of(self.mss[1]) {
            self.segment_len = packet.payload_len;
        }
    }

    /// Learn from the payload of a part of a longer frame other than the last.
    pub fn learn_segment(&mut self, payload_len: u32) {
        let known = self.segment_len;
        let usual = [0, 12, 20, 32].map(|less| USUAL_MSS - less);
        let is_likely = if known == 0 {
            let is_many = payload_len > USUAL_MSS && usual.iter().any(|len| payload_len % len == 0);
            (USUAL_MSS / 2..=MAX_JUMBO).contains(&payload_len) && !is_many
        } else {
            // If the application writes less, its segments are short but full ones are not.
            payload_len < known && payload_len * 2 >= known
        };
        if is_likely {
            self.segment_len = payload_len;
        }
    }

    /// Return the payload of a full segment, as far as known.
    #[inline]
    pub fn full_segment(&self) -> u32 {
        match self.segment_len {
            0 => self.segment_of(USUAL_MSS),
            known => known,
        }
    }

    /// Number of segments that a payload forms on the wire.
    #[inline]
    pub fn segments(&self, payload_len: u32) -> u32 {
        let full = self.full_segment();
        if payload_len <= full {
            return 1;
        }
        payload_len.div_ceil(full)
    }

    /// Number of segments in a frame of several, each of `part_len` bytes if known.
    pub fn segments_of(&self, payload_len: u32, part_len: u32) -> u32 {
        let is_short = part_len == 0 && payload_len <= self.full_segment();
        let part_len = if is_short { self.short_len } else { part_len };
        if part_len == 0 {
            self.segments(payload_len)
        } else {
            payload_len.div_ceil(part_len)
        }
    }

    /// Return true if the receiver's newest acknowledgment lies within a packet.
    pub fn lacks_first_of(&self, packet: &Sighting) -> bool {
        self.acked
            .is_some_and(|acked| !acked.is_before(packet.start()) && acked.is_before(packet.end()))
    }

    /// Return true if all bytes of a range were acknowledged.
    pub fn is_covered(&self, start: Seq, end: Seq) -> bool {
        self.acked
            .is_some_and(|acked| !acked.is_before(end) || self.sacked.covers(start, end))
    }
}
