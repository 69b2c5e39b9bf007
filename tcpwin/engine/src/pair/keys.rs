//! Seeded hashes of a packet's invariant fields, so that nobody can craft packets with colliding keys.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A keyed hash of a few words.
#[derive(Clone, Copy)]
pub struct Seed {
    first: u64,
    second: u64,
}

impl Seed {
    pub fn random() -> Self {
        let word = |number| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(number);
            hasher.finish() | 1
        };
        Self {
            first: word(1),
            second: word(2),
        }
    }

    /// A constant seed, for sampling that must be reproducible and where crafted packets gain nothing.
    pub const fn fixed() -> Self {
        Self {
            first: 0x9e37_79b9_7f4a_7c15,
            second: 0xc2b2_ae3d_27d4_eb4f,
        }
    }

    #[inline]
    pub fn hash(&self, a: u64, b: u64, c: u64) -> u64 {
        let mixed = mix(a ^ self.first, b ^ self.second);
        mix(mixed ^ c, self.first)
    }
}

/// Fold both halves of the product.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Combine two 32-bit words.
#[inline]
pub fn words(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
