//! A distribution of delays: exact for a few delays, otherwise accurate to one part in 128.

/// Number of delays up to which each is stored.
const MAX_EXACT: usize = 256;
/// Log2 of the buckets per power of two. The error is half a bucket's width.
const SUBDIVISION_BITS: u32 = 6;
/// Number of delays to buffer before counting: with thousands of connections, counts are rarely in the CPU cache.
const NEWEST: usize = 32;

/// Delays in nanoseconds.
#[derive(Clone, Debug)]
pub enum Delays {
    Exact(Vec<i64>),
    Counted(Box<Counts>),
}

#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Pairs of bucket and count, sorted by bucket.
    counts: Vec<(u16, u32)>,
    /// Buckets of the delays that are not counted yet.
    newest: Vec<u16>,
}

impl Counts {
    fn add(&mut self, bucket: u16) {
        if self.newest.len() >= NEWEST {
            self.count_newest();
        } else if self.newest.is_empty() {
            self.newest.reserve_exact(NEWEST);
        }
        self.newest.push(bucket);
    }

    fn count_newest(&mut self) {
        let counts = &mut self.counts;
        for bucket in self.newest.drain(..) {
            match counts.binary_search_by_key(&bucket, |entry| entry.0) {
                Ok(place) => counts[place].1 = counts[place].1.saturating_add(1),
                Err(place) => counts.insert(place, (bucket, 1)),
            }
        }
    }

    fn all(&self) -> Vec<(u16, u32)> {
        let mut all = self.clone();
        all.count_newest();
        all.counts
    }
}

impl Default for Delays {
    fn default() -> Self {
        Delays::Exact(Vec::new())
    }
}

fn bucket(delay_ns: i64) -> u16 {
    let value = delay_ns.max(0) as u64;
    let magnitude = value.max(1).ilog2();
    if magnitude < SUBDIVISION_BITS {
        return value as u16;
    }
    let shift = magnitude - SUBDIVISION_BITS;
    (((shift + 1) << SUBDIVISION_BITS) as u64 + ((value >> shift) - (1 << SUBDIVISION_BITS))) as u16
}

/// Return the middle of a bucket.
fn value(bucket: u16) -> i64 {
    let bucket = u32::from(bucket);
    if bucket < 1 << SUBDIVISION_BITS {
        return i64::from(bucket);
    }
    let shift = (bucket >> SUBDIVISION_BITS) - 1;
    let base = i64::from((bucket & ((1 << SUBDIVISION_BITS) - 1)) + (1 << SUBDIVISION_BITS));
    (base << shift) + (1i64 << shift) / 2
}

impl Delays {
    pub fn add(&mut self, delay_ns: i64) {
        match self {
            Delays::Exact(delays) if delays.len() < MAX_EXACT => delays.push(delay_ns),
            Delays::Exact(delays) => {
                let mut counts = Box::<Counts>::default();
                for delay_ns in delays.iter().chain([&delay_ns]) {
                    counts.add(bucket(*delay_ns));
                }
                *self = Delays::Counted(counts);
            }
            Delays::Counted(counts) => counts.add(bucket(delay_ns)),
        }
    }

    /// Return the smallest delay that is not exceeded by the given share of the delays.
    pub fn percentile_ns(&self, share: f64) -> Option<i64> {
        let wanted = |total: usize| ((share * total as f64).ceil() as usize).clamp(1, total.max(1));
        match self {
            Delays::Exact(delays) => {
                let mut sorted = delays.clone();
                sorted.sort_unstable();
                sorted.get(wanted(sorted.len()) - 1).copied()
            }
            Delays::Counted(counts) => {
                let counts = counts.all();
                let total = counts.iter().map(|entry| entry.1 as usize).sum();
                let mut seen = 0;
                counts
                    .iter()
                    .find(|(_, count)| {
                        seen += *count as usize;
                        seen >= wanted(total)
                    })
                    .map(|(bucket, _)| value(*bucket))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_delays_are_exact() {
        let mut delays = Delays::default();
        assert_eq!(delays.percentile_ns(0.5), None);
        for delay_ns in [30, 10, 20, 40] {
            delays.add(delay_ns);
        }
        assert_eq!(delays.percentile_ns(0.5), Some(20));
        assert_eq!(delays.percentile_ns(0.95), Some(40));
        assert_eq!(delays.percentile_ns(0.0), Some(10));
    }

    proptest! {
        #[test]
        fn many_delays_are_within_one_part_in_128(delays in prop::collection::vec(0i64..1 << 40, 300..600), share in 0.0f64..1.0) {
            let mut counted = Delays::default();
            for delay_ns in &delays {
                counted.add(*delay_ns);
            }
            let mut sorted = delays.clone();
            sorted.sort_unstable();
            let place = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            let exact_ns = sorted[place - 1];
            let found_ns = counted.percentile_ns(share).unwrap();
            prop_assert!((found_ns - exact_ns).abs() <= exact_ns / 128 + 1, "{found_ns} for {exact_ns}");
        }
    }
}
