//! The options of a SYN that other stages use.

use crate::tcp::window::scale::Offer;

/// Length of the timestamps option with its padding (RFC 7323 §3.2, appendix A).
pub const TIMESTAMPS_BYTES: u16 = 12;

/// The options of one side's SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    pub offer: Offer,
    /// 0 without the option.
    pub mss: u16,
    pub window: u16,
    /// The options it carried, as bits of [`syn_kind`].
    pub kinds: u8,
    /// Bytes of TCP Fast Open data; more may follow before the first acknowledgment (RFC 7413 §4.2).
    pub early_bytes: u16,
}

/// Bits for SYN options whose value does not matter, and for flags.
pub mod syn_kind {
    pub const SACK_PERMITTED: u8 = 1;
    pub const TIMESTAMPS: u8 = 2;
    pub const FAST_OPEN: u8 = 4;
    pub const MULTIPATH: u8 = 8;
    /// The segment is a SYN/ACK.
    pub const ANSWER: u8 = 16;
    /// Flags that negotiate ECN.
    pub const ECE: u8 = 32;
    pub const CWR: u8 = 64;
    pub const AE: u8 = 128;
    pub const ECN: u8 = ECE | CWR | AE;
}

impl SynOptions {
    /// Return the bytes that the offered options occupy in each segment.
    pub fn options_bytes(&self) -> u16 {
        if self.has(syn_kind::TIMESTAMPS) {
            TIMESTAMPS_BYTES
        } else {
            0
        }
    }

    pub fn is_answer(&self) -> bool {
        self.has(syn_kind::ANSWER)
    }

    pub fn has_early_data(&self) -> bool {
        self.early_bytes > 0
    }

    /// Return whether all of these options were present.
    pub fn has(&self, kinds: u8) -> bool {
        self.kinds & kinds == kinds
    }
}

impl Default for SynOptions {
    fn default() -> Self {
        SynOptions {
            offer: Offer::Unseen,
            mss: 0,
            window: 0,
            kinds: 0,
            early_bytes: 0,
        }
    }
}
