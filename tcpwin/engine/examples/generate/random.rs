//! Seeded random numbers using integers only: the same seed gives the same capture on every machine.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Return a number in `low..high`; `low` if the range is empty.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low);
        low + ((u128::from(self.bits()) * u128::from(span)) >> 64) as u64
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.range(0, 100) < share
    }

    /// Return a number in `low..low << octaves` with equally likely octaves: many small values, few large ones.
    pub fn octaves(&mut self, low: u64, octaves: u64) -> u64 {
        let base = low << self.range(0, octaves);
        self.range(base, 2 * base)
    }
}
