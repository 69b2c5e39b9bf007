//! One end of a TCP connection: slow start, fast retransmit, RTO, SACK, delayed ACKs, window and persist timer.
//! In: segments, application calls and expired timers. Out: segments. It knows nothing of loss or of the tap.

use crate::output::{Segment, ACK, FIN, PSH, RST, SYN};

pub const NEVER: u64 = u64::MAX;
const MS: u64 = 1_000_000;
const DELAYED_ACK_NS: u64 = 40 * MS;
const HANDSHAKE_TIMEOUT_NS: u64 = 1000 * MS;
const MAX_BACKOFF: u32 = 6;
const MSS_OFFERED: u16 = 1460;
const TIMESTAMP_OPTION_LEN: u64 = 12;

/// SYN options and behaviour of this end.
pub struct Traits {
    pub scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub receive_buffer_bytes: u64,
    pub max_cwnd_bytes: u64,
    pub rto_ns: u64,
    pub clock_offset_ms: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    Gone,
}

/// Stream offsets count the SYN as 0, so data starts at 1; the FIN takes one more.
pub struct Endpoint {
    traits: Traits,
    state: State,
    mss: u64,
    scales: bool,
    own_shift: u8,
    peer_shift: u8,
    sack: bool,
    timestamps: bool,
    ip_id: u16,

    una: u64,
    next: u64,
    /// End of the data written by the application.
    written: u64,
    closing: bool,
    /// The peer's right window edge.
    edge: u64,
    cwnd: u64,
    ssthresh: u64,
    duplicate_acks: u32,
    /// Recovery ends when this is acknowledged.
    recover: Option<u64>,
    /// Lost data from here to `lost_to`, except the ranges in `sacked`, waits for retransmission.
    resend_from: u64,
    lost_to: u64,
    sacked: Vec<(u64, u64)>,
    backoff: u32,
    timer_ns: u64,

    received: u64,
    peer_fin: Option<u64>,
    /// Latest first, as RFC 2018 section 4 orders the blocks.
    out_of_order: Vec<(u64, u64)>,
    unacked_segments: u32,
    ack_timer_ns: u64,
    ack_due: bool,
    reading: bool,
    unread_bytes: u64,
    advertised_edge: u64,
    echo: u32,

    pub timeouts: u64,
    pub fast_retransmits: u64,
    pub zero_windows: u64,
}

impl Endpoint {
    pub fn new(traits: Traits, ip_id: u16) -> Self {
        Endpoint {
            traits,
            state: State::Listen,
            mss: u64::from(MSS_OFFERED),
            scales: false,
            own_shift: 0,
            peer_shift: 0,
            sack: false,
            timestamps: false,
            ip_id,
            una: 0,
            next: 0,
            written: 1,
            closing: false,
            edge: 0,
            cwnd: 10 * u64::from(MSS_OFFERED),
            ssthresh: u64::MAX,
            duplicate_acks: 0,
            recover: None,
            resend_from: 0,
            lost_to: 0,
            sacked: Vec::new(),
            backoff: 0,
            timer_ns: NEVER,
            received: 0,
            peer_fin: None,
            out_of_order: Vec::new(),
            unacked_segments: 0,
            ack_timer_ns: NEVER,
            ack_due: false,
            reading: true,
            unread_bytes: 0,
            advertised_edge: 0,
            echo: 0,
            timeouts: 0,
            fast_retransmits: 0,
            zero_windows: 0,
        }
    }

    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    pub fn is_reading(&self) -> bool {
        self.reading
    }

    /// Everything before this stream offset has arrived.
    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn peer_has_closed(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.received >= fin)
    }

    pub fn timer_ns(&self) -> u64 {
        self.timer_ns
    }

    pub fn ack_timer_ns(&self) -> u64 {
        self.ack_timer_ns
    }

    pub fn connect(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.state = State::SynSent;
        self.send_syn(now_ns, out);
    }

    pub fn write(&mut self, now_ns: u64, bytes: u64, out: &mut Vec<Segment>) {
        self.written += bytes;
        // RFC 5681 4.1: an idle sender restarts with the initial window.
        if self.next == self.una {
            self.cwnd = self.cwnd.min(10 * self.mss);
        }
        self.transmit(now_ns, out);
    }

    pub fn close(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        if self.is_established() && !self.closing {
            self.closing = true;
            self.transmit(now_ns, out);
        }
    }

    pub fn abort(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        if self.is_established() {
            self.push(now_ns, self.next, 0, RST | ACK, out);
            self.vanish();
        }
    }

    pub fn pause_reading(&mut self) {
        self.reading = false;
    }

    /// The application reads all data, which opens the window.
    pub fn resume_reading(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.reading = true;
        self.unread_bytes = 0;
        if self.is_established() {
            self.acknowledge(now_ns, out);
        }
    }

    pub fn receive(&mut self, now_ns: u64, segment: &Segment, out: &mut Vec<Segment>) {
        if segment.flags & RST != 0 {
            return self.vanish();
        }
        if segment.flags & SYN != 0 {
            return self.receive_syn(now_ns, segment, out);
        }
        match self.state {
            State::Listen | State::SynSent => return,
            State::Gone => {
                // RFC 9293 3.10.7.1: a reset takes its sequence number from the segment's ACK field.
                if segment.payload_len > 0 || segment.flags & FIN != 0 {
                    out.push(Segment {
                        start: segment.ack,
                        flags: RST,
                        ..Segment::default()
                    });
                }
                return;
            }
            State::SynReceived => {
                self.state = State::Established;
                self.una = 1;
                self.timer_ns = NEVER;
                self.backoff = 0;
            }
            State::Established => {}
        }
        self.receive_data(now_ns, segment);
        self.receive_ack(segment);
        self.transmit(now_ns, out);
        if self.ack_due {
            self.acknowledge(now_ns, out);
        }
    }

    /// Handle expiry of the retransmission or persist timer.
    pub fn expire(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        match self.state {
            State::SynSent | State::SynReceived => return self.send_syn(now_ns, out),
            State::Listen | State::Gone => return self.timer_ns = NEVER,
            State::Established => {}
        }
        self.timer_ns = now_ns + (self.traits.rto_ns << self.backoff);
        if self.next > self.una {
            self.timeouts += 1;
            self.ssthresh = ((self.next - self.una) / 2).max(2 * self.mss);
            self.cwnd = self.mss;
            self.duplicate_acks = 0;
            self.recover = Some(self.next);
            self.resend_from = self.una;
            self.lost_to = self.next;
            self.transmit(now_ns, out);
        } else if self.edge > self.next {
            // RFC 1122 4.2.3.4: the timer forces out the part that the window allows.
            let len = (self.edge - self.next)
                .min(self.mss)
                .min(self.end() - self.next);
            self.send_range(now_ns, self.next, len, out);
            self.next += len;
        } else {
            // Linux tcp_xmit_probe_skb: no payload, one before SND.UNA.
            self.push(now_ns, self.una - 1, 0, ACK, out);
        }
    }

    /// Handle expiry of the delayed-ACK timer.
    pub fn expire_ack(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.ack_timer_ns = NEVER;
        if self.unacked_segments > 0 && self.is_established() {
            self.acknowledge(now_ns, out);
        }
    }

    fn vanish(&mut self) {
        self.state = State::Gone;
        self.timer_ns = NEVER;
        self.ack_timer_ns = NEVER;
    }

    fn send_syn(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.next = 1;
        self.timer_ns = now_ns + (HANDSHAKE_TIMEOUT_NS << self.backoff);
        let answer = self.state == State::SynReceived;
        let offered = |own: bool, agreed: bool| if answer { own && agreed } else { own };
        let timestamps = offered(self.traits.timestamps, self.timestamps);
        self.ip_id = self.ip_id.wrapping_add(1);
        out.push(Segment {
            start: 0,
            ack: self.received,
            flags: if answer { SYN | ACK } else { SYN },
            window: self.traits.receive_buffer_bytes.min(64_240) as u16,
            ip_id: self.ip_id,
            mss: Some(MSS_OFFERED),
            scale: self.traits.scale.filter(|_| self.scales || !answer),
            sack_permitted: offered(self.traits.sack, self.sack),
            timestamps: timestamps.then(|| [self.clock_ms(now_ns), self.echo]),
            ..Segment::default()
        });
    }

    fn receive_syn(&mut self, now_ns: u64, segment: &Segment, out: &mut Vec<Segment>) {
        let answer = segment.flags & ACK != 0;
        match (self.state, answer) {
            (State::Listen, false) | (State::SynSent, true) => {
                // RFC 7323 2.2: both sides or neither.
                if let (Some(own), Some(peer)) = (self.traits.scale, segment.scale) {
                    self.scales = true;
                    (self.own_shift, self.peer_shift) = (own, peer);
                }
                self.sack = self.traits.sack && segment.sack_permitted;
                self.timestamps = self.traits.timestamps && segment.timestamps.is_some();
                if self.timestamps {
                    self.mss = u64::from(MSS_OFFERED) - TIMESTAMP_OPTION_LEN;
                }
                self.echo = segment.timestamps.map_or(0, |[value, _]| value);
                self.received = 1;
                self.edge = 1 + u64::from(segment.window);
                if answer {
                    self.una = 1;
                    self.backoff = 0;
                    self.timer_ns = NEVER;
                    self.state = State::Established;
                    self.acknowledge(now_ns, out);
                } else {
                    self.state = State::SynReceived;
                    self.send_syn(now_ns, out);
                }
            }
            (State::SynReceived, false) => self.send_syn(now_ns, out),
            (State::Established, true) => self.acknowledge(now_ns, out),
            _ => {}
        }
    }

    fn receive_data(&mut self, now_ns: u64, segment: &Segment) {
        let fin = u64::from(segment.flags & FIN != 0);
        let (start, end) = (
            segment.start,
            segment.start + u64::from(segment.payload_len) + fin,
        );
        if let (Some([value, _]), true) = (segment.timestamps, start <= self.received) {
            self.echo = value;
        }
        if start == end {
            // A zero-window probe lies just before the expected data.
            self.ack_due |= start + 1 == self.received;
            return;
        }
        if fin == 1 {
            self.peer_fin = Some(end);
        }
        if end <= self.received {
            self.ack_due = true;
        } else if start > self.received {
            self.hold(start, end);
            self.ack_due = true;
        } else {
            let filled_gap = !self.out_of_order.is_empty();
            let before = self.received;
            self.received = end;
            while let Some(at) = self
                .out_of_order
                .iter()
                .position(|block| block.0 <= self.received)
            {
                self.received = self.received.max(self.out_of_order.remove(at).1);
            }
            if !self.reading {
                self.unread_bytes += self.received - before;
            }
            self.unacked_segments += 1;
            // RFC 5681 4.2: at least every second segment, and immediately when a gap is filled.
            if filled_gap || fin == 1 || self.unacked_segments >= 2 {
                self.ack_due = true;
            } else if self.ack_timer_ns == NEVER {
                self.ack_timer_ns = now_ns + DELAYED_ACK_NS;
            }
        }
    }

    fn hold(&mut self, start: u64, end: u64) {
        let mut block = (start, end);
        self.out_of_order.retain(|known| {
            let apart = known.1 < block.0 || block.1 < known.0;
            if !apart {
                block = (block.0.min(known.0), block.1.max(known.1));
            }
            apart
        });
        self.out_of_order.insert(0, block);
    }

    fn receive_ack(&mut self, segment: &Segment) {
        if segment.ack < self.una || segment.ack > self.next {
            return;
        }
        let edge = segment.ack + (u64::from(segment.window) << self.peer_shift);
        let acked = segment.ack - self.una;
        if acked > 0 {
            self.advance(segment.ack, acked);
        } else if self.next > self.una && segment.payload_len == 0 && edge == self.edge {
            self.duplicate_acks += 1;
        } else if self.next == self.una && edge > self.edge {
            self.timer_ns = NEVER;
            self.backoff = 0;
        }
        self.edge = edge;
        for &(left, right) in segment.sack.iter().take(usize::from(segment.sack_count)) {
            merge(&mut self.sacked, left.max(self.una), right);
        }
        if self.duplicate_acks >= 3 && self.recover.is_none() {
            self.fast_retransmits += 1;
            self.ssthresh = ((self.next - self.una) / 2).max(2 * self.mss);
            self.cwnd = self.ssthresh;
            self.recover = Some(self.next);
            self.resend_from = self.una;
            self.lost_to = (self.una + self.mss).min(self.next);
        }
        if let (Some(_), Some(highest)) = (self.recover, self.sacked.last()) {
            self.lost_to = self.lost_to.max(highest.0);
        }
    }

    fn advance(&mut self, ack: u64, acked: u64) {
        self.una = ack;
        self.duplicate_acks = 0;
        self.backoff = 0;
        self.timer_ns = NEVER;
        self.sacked.retain(|block| block.1 > ack);
        match self.recover {
            Some(recover) if ack >= recover => {
                self.recover = None;
                self.sacked.clear();
                self.cwnd = self.cwnd.max(self.ssthresh);
            }
            // RFC 6582 3.2 step 3: a partial ACK shows that the next segment was lost, too.
            Some(_) if !self.sack && self.lost_to <= ack => {
                self.resend_from = ack;
                self.lost_to = (ack + self.mss).min(self.next);
            }
            _ => {}
        }
        if self.cwnd < self.ssthresh {
            self.cwnd += acked.min(2 * self.mss);
        } else if self.recover.is_none() {
            self.cwnd += self.mss * acked / self.cwnd.max(1);
        }
        self.cwnd = self.cwnd.min(self.traits.max_cwnd_bytes);
    }

    fn end(&self) -> u64 {
        self.written + u64::from(self.closing)
    }

    /// Send what the congestion and receive windows allow: lost data first, then new data.
    fn transmit(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        if !self.is_established() {
            return;
        }
        let end = self.end();
        loop {
            let in_network = self.in_network_bytes();
            if in_network > 0 && in_network + self.mss > self.cwnd {
                break;
            }
            if let Some((start, len)) = self.next_hole() {
                self.resend_from = start + len;
                self.send_range(now_ns, start, len, out);
                continue;
            }
            let len = end.min(self.edge).saturating_sub(self.next).min(self.mss);
            // RFC 1122 4.2.3.4: a segment cut short by the window waits.
            if len == 0 || (len < self.mss && self.next + len < end) {
                break;
            }
            self.send_range(now_ns, self.next, len, out);
            self.next += len;
        }
        if self.una == end {
            self.timer_ns = NEVER;
        } else if self.timer_ns == NEVER {
            self.timer_ns = now_ns + (self.traits.rto_ns << self.backoff);
        }
    }

    /// RFC 6675's pipe: outstanding data minus SACKed data minus lost data not yet retransmitted.
    fn in_network_bytes(&self) -> u64 {
        let mut bytes = self.next - self.una;
        if self.recover.is_some() {
            let waiting_from = self.resend_from.max(self.una);
            let mut waiting = self.lost_to.saturating_sub(waiting_from);
            for &(left, right) in &self.sacked {
                bytes -= right - left.max(self.una);
                waiting -= right
                    .min(self.lost_to)
                    .saturating_sub(left.max(waiting_from))
                    .min(waiting);
            }
            bytes -= waiting.min(bytes);
        }
        bytes
    }

    fn next_hole(&self) -> Option<(u64, u64)> {
        self.recover?;
        let mut start = self.resend_from.max(self.una);
        let mut stop = self.lost_to;
        for &(left, right) in &self.sacked {
            if start < left {
                stop = stop.min(left);
                break;
            }
            start = start.max(right);
        }
        (start < stop).then(|| (start, self.mss.min(stop - start)))
    }

    fn send_range(&mut self, now_ns: u64, start: u64, len: u64, out: &mut Vec<Segment>) {
        let end = start + len;
        let fin = self.closing && end > self.written;
        let mut flags = ACK;
        if end >= self.written {
            flags |= PSH;
        }
        if fin {
            flags |= FIN;
        }
        self.push(now_ns, start, len - u64::from(fin), flags, out);
    }

    fn acknowledge(&mut self, now_ns: u64, out: &mut Vec<Segment>) {
        self.push(now_ns, self.next, 0, ACK, out);
    }

    fn push(&mut self, now_ns: u64, start: u64, len: u64, flags: u8, out: &mut Vec<Segment>) {
        self.ack_due = false;
        self.unacked_segments = 0;
        self.ack_timer_ns = NEVER;
        self.ip_id = self.ip_id.wrapping_add(1);
        let mut segment = Segment {
            start,
            ack: self.received,
            flags,
            window: self.advertise(),
            payload_len: len as u16,
            ip_id: self.ip_id,
            timestamps: self.timestamps.then(|| [self.clock_ms(now_ns), self.echo]),
            ..Segment::default()
        };
        if self.sack && len == 0 {
            for (slot, block) in segment.sack.iter_mut().zip(&self.out_of_order) {
                *slot = *block;
                segment.sack_count += 1;
            }
        }
        out.push(segment);
    }

    /// Return the window field. The right edge never moves back (RFC 9293 3.8.6); Linux rounds up to ensure this.
    fn advertise(&mut self) -> u16 {
        let free = self
            .traits
            .receive_buffer_bytes
            .saturating_sub(self.unread_bytes);
        let promised = self.advertised_edge.saturating_sub(self.received);
        let unit = 1u64 << self.own_shift;
        let field = (free / unit).max(promised.div_ceil(unit)).min(65_535);
        self.advertised_edge = self.advertised_edge.max(self.received + field * unit);
        self.zero_windows += u64::from(field == 0);
        field as u16
    }

    fn clock_ms(&self, now_ns: u64) -> u32 {
        ((now_ns / MS) as u32).wrapping_add(self.traits.clock_offset_ms)
    }
}

/// Add a block to sorted, disjoint blocks.
fn merge(blocks: &mut Vec<(u64, u64)>, left: u64, right: u64) {
    if left >= right {
        return;
    }
    let first = blocks.partition_point(|block| block.1 < left);
    let last = blocks.partition_point(|block| block.0 <= right);
    let merged = blocks[first..last]
        .iter()
        .fold((left, right), |all, block| {
            (all.0.min(block.0), all.1.max(block.1))
        });
    blocks.splice(first..last, [merged]);
}
