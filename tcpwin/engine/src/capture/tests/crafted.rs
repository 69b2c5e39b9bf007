//! Builds captures byte by byte: records and blocks in either byte order, with arbitrary lengths.

#[derive(Clone, Copy, Debug)]
pub enum Order {
    Little,
    Big,
}

pub use Order::{Big, Little};

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Little => value.to_le_bytes(),
            Big => value.to_be_bytes(),
        }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Little => value.to_le_bytes(),
            Big => value.to_be_bytes(),
        }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        match self {
            Little => value.to_le_bytes(),
            Big => value.to_be_bytes(),
        }
    }
}

pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;
pub const MODIFIED: u32 = 0xa1b2_cd34;

pub fn pcap_header(order: Order, magic: u32, snaplen: u32, network: u32) -> Vec<u8> {
    pcap_header_of_version(order, magic, (2, 4), snaplen, network)
}

pub fn pcap_header_of_version(
    order: Order,
    magic: u32,
    version: (u16, u16),
    snaplen: u32,
    network: u32,
) -> Vec<u8> {
    let mut bytes = order.u32(magic).to_vec();
    bytes.extend(order.u16(version.0));
    bytes.extend(order.u16(version.1));
    bytes.extend([0; 8]);
    bytes.extend(order.u32(snaplen));
    bytes.extend(order.u32(network));
    bytes
}

/// The standard header: little-endian, microseconds, Ethernet.
pub fn plain_header() -> Vec<u8> {
    pcap_header(Little, MICROSECONDS, 65_535, 1)
}

/// A record with the given lengths, regardless of `data`.
pub fn record_claiming(
    order: Order,
    time: (u32, u32),
    lengths: (u32, u32),
    data: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [time.0, time.1, lengths.0, lengths.1] {
        bytes.extend(order.u32(word));
    }
    bytes.extend(data);
    bytes
}

pub fn record(order: Order, time: (u32, u32), original: u32, data: &[u8]) -> Vec<u8> {
    record_claiming(order, time, (data.len() as u32, original), data)
}

/// A block around `body`, with padding and correct lengths.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let len = 12 + body.len().next_multiple_of(4) as u32;
    block_claiming(order, kind, (len, len), body)
}

/// A block with the given lengths before and after its padded body.
pub fn block_claiming(order: Order, kind: u32, lengths: (u32, u32), body: &[u8]) -> Vec<u8> {
    let mut bytes = order.u32(kind).to_vec();
    bytes.extend(order.u32(lengths.0));
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(order.u32(lengths.1));
    bytes
}

pub fn section(order: Order) -> Vec<u8> {
    section_of_version(order, (1, 0))
}

pub fn section_of_version(order: Order, version: (u16, u16)) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(version.0));
    body.extend(order.u16(version.1));
    body.extend(order.u64(u64::MAX));
    block(order, 0x0a0d_0d0a, &body)
}

pub fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = order.u16(code).to_vec();
    bytes.extend(order.u16(value.len() as u16));
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn interface(order: Order, link_type: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
    let mut body = order.u16(link_type).to_vec();
    body.extend([0; 2]);
    body.extend(order.u32(snaplen));
    body.extend(options);
    block(order, 1, &body)
}

pub fn packet_body(order: Order, id: u32, ticks: u64, lengths: (u32, u32), data: &[u8]) -> Vec<u8> {
    let words = [id, (ticks >> 32) as u32, ticks as u32, lengths.0, lengths.1];
    let mut body: Vec<u8> = words.iter().flat_map(|&word| order.u32(word)).collect();
    body.extend(data);
    body
}

pub fn packet(order: Order, id: u32, ticks: u64, original: u32, data: &[u8]) -> Vec<u8> {
    let lengths = (data.len() as u32, original);
    block(order, 6, &packet_body(order, id, ticks, lengths, data))
}

pub fn simple_packet(order: Order, original: u32, data: &[u8]) -> Vec<u8> {
    let mut body = order.u32(original).to_vec();
    body.extend(data);
    block(order, 3, &body)
}

pub fn statistics(order: Order, id: u32, options: &[u8]) -> Vec<u8> {
    let mut body = order.u32(id).to_vec();
    body.extend([0; 8]);
    body.extend(options);
    block(order, 5, &body)
}

/// Three packets of 5, 0 and 9 bytes at 1.000002, 2 and 3.000004 s.
pub fn small_pcap() -> Vec<u8> {
    [
        plain_header(),
        record(Little, (1, 2), 5, b"first"),
        record(Little, (2, 0), 60, b""),
        record(Little, (3, 4), 9, b"the third"),
    ]
    .concat()
}

/// The packets of [`small_pcap`], with blocks of other kinds between them.
pub fn small_pcapng() -> Vec<u8> {
    [
        section(Little),
        interface(Little, 1, 65_535, &option(Little, 2, b"eth0")),
        packet(Little, 0, 1_000_002, 5, b"first"),
        block(Little, 4, b"names"),
        packet(Little, 0, 2_000_000, 60, b""),
        statistics(Little, 0, &option(Little, 5, &Little.u64(7))),
        packet(Little, 0, 3_000_004, 9, b"the third"),
    ]
    .concat()
}

/// Incompressible bytes (splitmix64).
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((z ^ (z >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// 1,000 packets of 1,000 bytes of noise, one per millisecond.
pub fn noisy_pcap() -> Vec<u8> {
    let mut bytes = plain_header();
    for n in 0..1000 {
        let data = noise(1000, u64::from(n));
        bytes.extend(record(Little, (100, n * 1000), 1000, &data));
    }
    bytes
}
