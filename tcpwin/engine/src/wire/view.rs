//! The layer passed from one header parser to the next: captured bytes, wire length, and protocol.
//! All reads are checked. Reading past the capture ends the walk as `HeaderCut`, past the wire length as `Malformed`.

use super::outcome::Outcome;
use crate::capture::LinkType;

/// Protocol numbers of [`Layer::Transport`] (IANA).
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The captured `bytes` of a layer that had `wire_len` bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    /// At least `bytes.len()`.
    pub wire_len: usize,
}

/// The protocol of a [`View`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Link(LinkType),
    Ethernet,
    /// An EtherType payload (IEEE 802), as in Ethernet, SLL, GRE and others.
    EtherType(u16),
    Llc,
    Ppp,
    Mpls,
    /// IEEE 802.11; true if the header is padded to four bytes (radiotap flag 0x20).
    Wifi(bool),
    /// IPv4 or IPv6, by version nibble.
    Ip,
    Ipv4,
    Ipv6,
    /// The payload of an IP protocol number.
    Transport(u8),
    Sflow,
}

/// The next layer, or the outcome that ends the walk.
pub(super) type Step<'a> = Result<(Layer, View<'a>), Outcome>;

impl<'a> View<'a> {
    pub fn new(bytes: &'a [u8], wire_len: usize) -> Self {
        Self {
            bytes,
            wire_len: wire_len.max(bytes.len()),
        }
    }

    /// Return the `N` bytes at `at`.
    #[inline]
    pub fn chunk<const N: usize>(&self, at: usize) -> Result<&'a [u8; N], Outcome> {
        match self
            .bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<N>())
        {
            Some(chunk) => Ok(chunk),
            None => Err(self.missing(at.saturating_add(N))),
        }
    }

    #[inline]
    pub fn u8(&self, at: usize) -> Result<u8, Outcome> {
        self.chunk::<1>(at).map(|b| b[0])
    }

    #[inline]
    pub fn be16(&self, at: usize) -> Result<u16, Outcome> {
        self.chunk(at).map(|b| u16::from_be_bytes(*b))
    }

    #[inline]
    pub fn be32(&self, at: usize) -> Result<u32, Outcome> {
        self.chunk(at).map(|b| u32::from_be_bytes(*b))
    }

    pub fn le16(&self, at: usize) -> Result<u16, Outcome> {
        self.chunk(at).map(|b| u16::from_le_bytes(*b))
    }

    pub fn le32(&self, at: usize) -> Result<u32, Outcome> {
        self.chunk(at).map(|b| u32::from_le_bytes(*b))
    }

    /// Skip `count` bytes; the result is empty if the capture ends exactly there.
    #[inline]
    pub fn skip(&self, count: usize) -> Result<View<'a>, Outcome> {
        match (self.bytes.get(count..), self.wire_len.checked_sub(count)) {
            (Some(bytes), Some(wire_len)) => Ok(View { bytes, wire_len }),
            _ => Err(self.missing(count)),
        }
    }

    /// Limit to `len` bytes: a length field can shorten a layer (padding, trailers) but never lengthen it, except [`View::lengthened`].
    #[inline]
    pub fn limit(&self, len: usize) -> View<'a> {
        let bytes = self.bytes.get(..len).unwrap_or(self.bytes);
        View {
            bytes,
            wire_len: self.wire_len.min(len),
        }
    }

    /// Replace a wire length that is known to be too small.
    #[cold]
    pub fn lengthened(&self, len: usize) -> View<'a> {
        View {
            bytes: self.bytes,
            wire_len: self.wire_len.max(len),
        }
    }

    /// Treat as the first of several tunnel fragments: the rest was sent too, so inner length fields stay valid.
    pub fn first_of_several(&self) -> View<'a> {
        const LONGEST_DATAGRAM: usize = 65_535;
        View {
            bytes: self.bytes,
            wire_len: self.wire_len.max(LONGEST_DATAGRAM),
        }
    }

    /// Return the reason why `needed` bytes are not available.
    #[cold]
    pub fn missing(&self, needed: usize) -> Outcome {
        if needed <= self.wire_len {
            Outcome::HeaderCut
        } else {
            Outcome::Malformed
        }
    }
}
