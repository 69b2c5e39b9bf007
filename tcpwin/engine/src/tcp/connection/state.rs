//! The record of a connection: two directions, without per-packet data.
//!
//! Hot fields are inline; rarely needed state is behind one pointer per direction, and one for the connection.

use crate::event::Events;
use crate::tcp::connection::direction::Direction;
use crate::tcp::connection::incidents::{DoubtfulReset, Incidents};
use crate::tcp::connection::journal::JournalEntry;
use crate::tcp::connection::marks::{Initiator, Marks};
use crate::tcp::connection::stalls::Stalls;
use crate::tcp::timing::pipeline::Pipeline;
use crate::wire::Segment;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// In network byte order; IPv4 as ::ffff:a.b.c.d.
    pub address: [u8; 16],
    pub port: u16,
}

/// Return an address as two integers.
#[inline(always)]
pub(super) fn address_halves(address: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_ne_bytes(*address);
    [both as u64, (both >> 64) as u64]
}

/// Sentinel for an unknown time.
const NEVER: i64 = i64::MIN;

fn if_ever(time_ns: i64) -> Option<i64> {
    (time_ns != NEVER).then_some(time_ns)
}

/// The clock was set back; a [`Pipeline`] follows the data.
const CLOCK: u8 = 1;
const PIPELINE: u8 = 2;

#[derive(Clone, Debug)]
pub struct Connection {
    /// Side 0 sent the first captured segment.
    pub endpoints: [Endpoint; 2],
    /// `directions[s]` is the data sent by side `s`.
    pub directions: [Direction; 2],
    pub marks: Marks,
    /// By side: whether its next segment may take the fast path.
    pub is_ordinary: [bool; 2],
    /// Flags read at every segment: [`CLOCK`] and [`PIPELINE`].
    watched: u8,
    pub start_ns: i64,
    pub end_ns: i64,
    pub first_frame: u64,
    /// Times of the last SYN, the last SYN/ACK and the ACK that completed the handshake, or [`NEVER`].
    syn_ns: i64,
    syn_ack_ns: i64,
    established_ns: i64,
    pub incidents: Option<Box<Incidents>>,
}

// Captures contain millions of connections, so rarely needed state is behind a pointer.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Connection>() <= 608);

impl Connection {
    pub fn new(segment: &Segment, epoch: u16) -> Self {
        Connection {
            endpoints: [
                Endpoint {
                    address: segment.src,
                    port: segment.src_port,
                },
                Endpoint {
                    address: segment.dst,
                    port: segment.dst_port,
                },
            ],
            directions: Default::default(),
            marks: Marks::new(guess_initiator(segment), segment.ip_version),
            is_ordinary: [false; 2],
            watched: 0,
            start_ns: segment.time_ns,
            end_ns: segment.time_ns,
            first_frame: segment.frame,
            syn_ns: NEVER,
            syn_ack_ns: NEVER,
            established_ns: NEVER,
            incidents: Incidents::of_epoch(epoch),
        }
    }

    /// Return the side, 0 or 1, that sent the segment; None if it belongs to another four-tuple.
    #[inline(always)]
    pub fn side_of(&self, segment: &Segment) -> Option<usize> {
        let differs = |endpoint: &Endpoint, address: &[u8; 16], port: u16| {
            let [first, last] = address_halves(&endpoint.address);
            let [other_first, other_last] = address_halves(address);
            (first ^ other_first) | (last ^ other_last) | u64::from(endpoint.port ^ port)
        };
        // No branch on the side, which is unpredictable.
        let (src, dst) = (&segment.src, &segment.dst);
        let side = usize::from(differs(&self.endpoints[0], src, segment.src_port) != 0);
        let sender = differs(&self.endpoints[side], src, segment.src_port);
        let receiver = differs(&self.endpoints[1 - side], dst, segment.dst_port);
        (sender | receiver == 0).then_some(side)
    }

    /// Return the direction of a side's data, and the direction whose data that side acknowledges.
    #[inline(always)]
    pub fn sent_and_acked(&mut self, side: usize) -> (&mut Direction, &mut Direction) {
        let [first, second] = &mut self.directions;
        if side == 0 {
            (first, second)
        } else {
            (second, first)
        }
    }

    /// Return the side called `a`.
    #[inline]
    pub fn initiator_side(&self) -> usize {
        self.marks.initiator_side()
    }

    pub fn syn_ns(&self) -> Option<i64> {
        if_ever(self.syn_ns)
    }

    pub fn syn_ack_ns(&self) -> Option<i64> {
        if_ever(self.syn_ack_ns)
    }

    #[inline]
    pub fn established_ns(&self) -> Option<i64> {
        if_ever(self.established_ns)
    }

    pub fn note_syn(&mut self, is_answer: bool, now_ns: i64) {
        *(if is_answer {
            &mut self.syn_ack_ns
        } else {
            &mut self.syn_ns
        }) = now_ns;
    }

    pub fn note_established(&mut self, now_ns: i64) {
        self.established_ns = now_ns;
    }

    /// Return the time from the SYN to the ACK that completed the handshake: the RTT of the whole path. None if a SYN
    /// or SYN/ACK was retransmitted, because it is ambiguous which copy was answered (Karn's algorithm, RFC 6298 §3).
    pub fn handshake_rtt_ns(&self) -> Option<i64> {
        if self.marks.is_handshake_ambiguous() {
            return None;
        }
        let (syn_ns, established_ns) = (self.syn_ns()?, self.established_ns()?);
        Some(established_ns.saturating_sub(syn_ns)).filter(|ns| *ns >= 0)
    }

    /// Whether its clock was set back ([`Clock::is_doubted`](crate::tcp::connection::clock::Clock::is_doubted)).
    #[inline(always)]
    pub fn is_clock_doubted(&self) -> bool {
        self.watched & CLOCK != 0
    }

    pub fn doubt_clock(&mut self, is_doubted: bool) {
        self.watched = (self.watched & !CLOCK) | (u8::from(is_doubted) * CLOCK);
    }

    /// Whether a [`Pipeline`] follows its data.
    #[inline(always)]
    pub fn is_pipelined(&self) -> bool {
        self.watched & PIPELINE != 0
    }

    pub fn set_pipeline(&mut self, pipeline: Pipeline) {
        self.watched |= PIPELINE;
        self.incidents_mut().rare_mut().pipeline = Some(Box::new(pipeline));
    }

    /// Return the incidents; allocate them if needed.
    pub fn incidents_mut(&mut self) -> &mut Incidents {
        self.incidents.get_or_insert_with(Box::default)
    }

    /// Return the number of earlier connections with the same four-tuple.
    pub fn epoch(&self) -> u16 {
        self.incidents
            .as_ref()
            .map_or(0, |incidents| incidents.epoch)
    }

    /// Return whether some segments are samples.
    pub fn is_sampled(&self) -> bool {
        (self.incidents.as_ref()).is_some_and(|incidents| incidents.is_sampled)
    }

    /// Return how often events of a set occurred at a side's segments.
    pub fn event_count(&self, side: usize, events: Events) -> u32 {
        (self.incidents.as_ref()).map_or(0, |incidents| incidents.event_count(side, events))
    }

    /// Return the first events, in capture order.
    pub fn journal(&self) -> Vec<JournalEntry> {
        (self.incidents.as_ref()).map_or(Vec::new(), |incidents| incidents.journal())
    }

    /// Remove later frames from the journal.
    pub fn end_journal_at(&mut self, frame: u64) {
        if let Some(incidents) = &mut self.incidents {
            incidents.end_journal_at(frame);
        }
    }

    pub fn pipeline(&self) -> Option<&Pipeline> {
        self.incidents.as_ref()?.rare.as_ref()?.pipeline.as_deref()
    }

    pub fn stalls(&self) -> Option<&Stalls> {
        self.incidents.as_ref()?.rare.as_ref()?.stalls.as_deref()
    }

    pub fn reset_frame(&self) -> Option<u64> {
        Some(self.incidents.as_ref()?.rare.as_ref()?.reset?.1)
    }

    /// Return the time of the first RST, if the connection had data.
    pub fn reset_ns(&self) -> Option<i64> {
        Some(self.incidents.as_ref()?.rare.as_ref()?.reset?.0)
    }

    #[inline]
    pub fn doubtful_reset(&self) -> Option<DoubtfulReset> {
        self.incidents.as_ref()?.rare.as_ref()?.doubtful_reset
    }

    /// Return whether windows in segments of this side are known in bytes.
    #[inline]
    pub fn window_is_certain(&self, side: usize) -> bool {
        self.directions[side].own_scale.is_certain()
    }
}

/// Guess the initiator of a connection without a SYN: the other end of a well-known port, else the end with an
/// ephemeral port, else the sender of the first segment.
fn guess_initiator(segment: &Segment) -> Initiator {
    /// NFS and its mount protocol, whose clients use reserved ports (RFC 5531 §14.4).
    const NFS: [u16; 2] = [2049, 20_048];
    let (from, to) = (segment.src_port, segment.dst_port);
    if NFS.contains(&from) != NFS.contains(&to) {
        return Initiator::Guessed(u8::from(NFS.contains(&from)));
    }
    let is_service = |port: u16| port < 1024;
    // IANA's dynamic range begins at 49152, Linux's default range (ip_local_port_range) at 32768.
    let is_ephemeral = |port: u16| port >= 32_768;
    let sender_answers = (is_service(from) && !is_service(to))
        || (!is_ephemeral(from) && is_ephemeral(to) && !is_service(to));
    Initiator::Guessed(u8::from(sender_answers))
}
