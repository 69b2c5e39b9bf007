//! One TCP segment with all that later stages need from its headers. Plain data, no borrow, no payload.

/// `ip_id` of a packet that has none (IPv6 without a fragment header).
pub const NO_IP_ID: u32 = u32::MAX;

pub const FIN: u16 = 0x001;
pub const SYN: u16 = 0x002;
pub const RST: u16 = 0x004;
pub const PSH: u16 = 0x008;
pub const ACK: u16 = 0x010;
pub const URG: u16 = 0x020;
pub const ECE: u16 = 0x040;
pub const CWR: u16 = 0x080;
/// Once NS, the nonce sum (RFC 3540); now the third bit of AccECN's counter (RFC 9768 §3.1).
pub const AE: u16 = 0x100;

/// Options of one TCP header. A field that is absent from the header is zero or `None`.
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
    /// Kinds of Multipath TCP options (kind 30, RFC 8684 §3), a bit for each subtype; the highest for one without any.
    pub multipath: u16,
    /// Count of valid entries in `sack`.
    pub sack_count: u8,
    /// SACK blocks as (left edge, right edge) in the order of the header (RFC 2018 §3). Those beyond `sack_count`
    /// are left over from earlier segments.
    pub sack: [(u32, u32); 4],
}

impl Options {
    /// The valid SACK blocks.
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        let count = usize::from(self.sack_count).min(self.sack.len());
        self.sack.get(..count).unwrap_or_default()
    }

    /// Let there be no option but timestamps, without clearing what `sack_count` tells to be void.
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

    /// Whether there is an option besides timestamps. Each option is named: one added later has to be thought of here.
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
        // Without a branch for each.
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

/// Facts about how this segment was captured, as bit flags in [`Segment::capture_flags`].
pub mod capture_flag {
    /// The capture ends inside the TCP options; those before the cut were kept.
    pub const OPTIONS_CUT: u8 = 0x01;
    /// IP total length (or IPv6 payload length) was 0: the length comes from the frame (TSO/GRO super-segment).
    pub const LENGTH_FROM_FRAME: u8 = 0x02;
    /// Rebuilt from IP fragments; the frame is the one that completed the datagram.
    pub const FRAGMENTED: u8 = 0x04;
    /// The options list is malformed, or the header is longer than its datagram; options before the error were kept.
    pub const OPTIONS_BAD: u8 = 0x08;
    /// The frame was cut by the snapshot length (captured < original).
    pub const SNAPPED: u8 = 0x10;
    /// One of the packets that a flow monitor sampled (sFlow): most of the others are missing.
    pub const SAMPLED: u8 = 0x20;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub frame: u64,
    /// Nanoseconds since the Unix epoch. Packets without a time carry that of the packet before.
    pub time_ns: i64,
    /// Network byte order; IPv4 as ::ffff:a.b.c.d.
    pub src: [u8; 16],
    pub dst: [u8; 16],
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    /// TCP payload bytes by the IP header, not by what was captured.
    pub payload_len: u32,
    /// Identification of the IPv4 header or of an IPv6 fragment header, or [`NO_IP_ID`].
    pub ip_id: u32,
    /// The 12 bits of the flags field (reserved bits and AE included), FIN lowest.
    pub flags: u16,
    /// The window field, unscaled.
    pub window: u16,
    pub checksum: u16,
    /// 4 or 6.
    pub ip_version: u8,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// DSCP and ECN: IPv4's type of service or IPv6's traffic class (RFC 2474 §3, RFC 3168 §5).
    pub traffic_class: u8,
    pub capture_flags: u8,
    pub options: Options,
}

impl Segment {
    /// A router on the path marked it instead of dropping it: congestion experienced (RFC 3168 §5).
    #[inline(always)]
    pub fn is_marked(&self) -> bool {
        self.traffic_class & 3 == 3
    }

    /// Sequence space that it takes: payload, SYN and FIN (RFC 9293 §3.3.1).
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        let control = u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0);
        self.payload_len.saturating_add(control)
    }

    /// A segment with every field zero, for buffers that are filled later.
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
