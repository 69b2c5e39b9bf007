//! One TCP segment with all header fields that later stages need. Plain data: no borrows, no payload.

/// `ip_id` of a packet without one (IPv6 without a fragment header).
pub const NO_IP_ID: u32 = u32::MAX;

pub const FIN: u16 = 0x001;
pub const SYN: u16 = 0x002;
pub const RST: u16 = 0x004;
pub const PSH: u16 = 0x008;
pub const ACK: u16 = 0x010;
pub const URG: u16 = 0x020;
pub const ECE: u16 = 0x040;
pub const CWR: u16 = 0x080;
/// Formerly NS, the nonce sum (RFC 3540); now the third bit of AccECN's counter (RFC 9768 §3.1).
pub const AE: u16 = 0x100;

/// Options of a TCP header. An absent option is zero or `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Timestamps (RFC 7323 §3): TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Window scale shift as sent (RFC 7323 §2.2); may exceed 14.
    pub window_scale: Option<u8>,
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// SACK permitted (RFC 2018 §2).
    pub sack_permitted: bool,
    /// TCP Fast Open: cookie option present (RFC 7413), kind 34 or the experimental 254 with magic 0xF989.
    pub fast_open: bool,
    /// Multipath TCP options (kind 30, RFC 8684 §3), one bit per subtype; the highest bit means no subtype.
    pub multipath: u16,
    /// Number of valid entries in `sack`.
    pub sack_count: u8,
    /// SACK blocks as (left edge, right edge) in header order (RFC 2018 §3). Entries beyond `sack_count` are stale.
    pub sack: [(u32, u32); 4],
}

impl Options {
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        let count = usize::from(self.sack_count).min(self.sack.len());
        self.sack.get(..count).unwrap_or_default()
    }

    /// Reset to timestamps only, without clearing the entries that `sack_count` marks as stale.
    #[inline(always)]
    pub(super) fn set_only(&mut self, timestamps: Option<(u32, u32)>) {
        let Options {
            timestamps: only,
            window_scale,
            mss,
            sack_permitted,
            fast_open,
            multipath,
            sack_count,
            sack: _,
        } = self;
        *only = timestamps;
        (*window_scale, *mss) = (None, None);
        (*sack_permitted, *fast_open, *multipath) = (false, false, 0);
        *sack_count = 0;
    }

    /// Return true if there are options besides timestamps. The pattern lists every field, so that a new one is not
    /// forgotten.
    #[inline(always)]
    pub fn has_more_than_timestamps(&self) -> bool {
        let Options {
            timestamps: _,
            window_scale,
            mss,
            sack_permitted,
            fast_open,
            multipath,
            sack_count,
            sack: _,
        } = self;
        // Branchless.
        window_scale.is_some()
            | mss.is_some()
            | sack_permitted
            | fast_open
            | (*multipath | u16::from(*sack_count) != 0)
    }
}

impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        let plain = |o: &Self| {
            let kinds = (o.sack_permitted, o.fast_open, o.multipath);
            (o.timestamps, o.window_scale, o.mss, kinds)
        };
        plain(self) == plain(other) && self.sack_blocks() == other.sack_blocks()
    }
}

impl Eq for Options {}

/// Properties of how the segment was captured, as bit flags in [`Segment::capture_flags`].
pub mod capture_flag {
    /// The capture ends inside the TCP options; those before the cut are present.
    pub const OPTIONS_CUT: u8 = 0x01;
    /// The IP total length (or IPv6 payload length) is 0: the length was taken from the frame (TSO/GRO super-segment).
    pub const LENGTH_FROM_FRAME: u8 = 0x02;
    /// Reassembled from IP fragments; the frame is the one that completed the datagram.
    pub const FRAGMENTED: u8 = 0x04;
    /// The options are malformed, or the header is longer than its datagram; options before the error are present.
    pub const OPTIONS_BAD: u8 = 0x08;
    /// The frame was cut by the snapshot length (captured < original).
    pub const SNAPPED: u8 = 0x10;
    /// Sampled by a flow monitor (sFlow): most other packets are missing.
    pub const SAMPLED: u8 = 0x20;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub frame: u64,
    /// Nanoseconds since the Unix epoch. A packet without a time has the previous packet's.
    pub time_ns: i64,
    /// In network byte order; IPv4 as ::ffff:a.b.c.d.
    pub src: [u8; 16],
    pub dst: [u8; 16],
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    /// Length of the TCP payload according to the IP header, not the captured length.
    pub payload_len: u32,
    /// Identification from the IPv4 header or the IPv6 fragment header, or [`NO_IP_ID`].
    pub ip_id: u32,
    /// The 12-bit flags field, including reserved bits and AE; FIN is the lowest bit.
    pub flags: u16,
    /// The unscaled window field.
    pub window: u16,
    pub checksum: u16,
    pub ip_version: u8,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// DSCP and ECN: IPv4's type of service or IPv6's traffic class (RFC 2474 §3, RFC 3168 §5).
    pub traffic_class: u8,
    pub capture_flags: u8,
    pub options: Options,
}

impl Segment {
    /// Congestion experienced: a router marked the packet instead of dropping it (RFC 3168 §5).
    #[inline(always)]
    pub fn is_marked(&self) -> bool {
        self.traffic_class & 3 == 3
    }

    /// The sequence space occupied: payload, SYN and FIN (RFC 9293 §3.3.1).
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        let control = u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0);
        self.payload_len.saturating_add(control)
    }

    /// A segment with all fields zero, for buffers that are filled later.
    pub const EMPTY: Segment = Segment {
        frame: 0,
        time_ns: 0,
        src: [0; 16],
        dst: [0; 16],
        src_port: 0,
        dst_port: 0,
        seq: 0,
        ack: 0,
        payload_len: 0,
        ip_id: NO_IP_ID,
        flags: 0,
        window: 0,
        checksum: 0,
        ip_version: 4,
        ttl: 0,
        traffic_class: 0,
        capture_flags: 0,
        options: Options {
            timestamps: None,
            window_scale: None,
            mss: None,
            sack_permitted: false,
            fast_open: false,
            multipath: 0,
            sack_count: 0,
            sack: [(0, 0); 4],
        },
    };
}
