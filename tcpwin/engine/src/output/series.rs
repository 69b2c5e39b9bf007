//! A bounded series: minimum, maximum and last value per time bucket; buckets double when there are too many.

/// One bucket that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    index: i64,
    pub min: i64,
    pub max: i64,
    pub last: i64,
    pub sum: i64,
}

#[derive(Clone, Debug)]
pub struct Series {
    pub buckets: Vec<Bucket>,
    limit: usize,
    start_ns: i64,
    pub width_ns: i64,
}

impl Series {
    /// At most `limit` buckets, the first beginning at `start_ns`.
    pub fn new(start_ns: i64, limit: usize) -> Self {
        Series {
            buckets: Vec::new(),
            limit: limit.max(2),
            start_ns,
            width_ns: 1,
        }
    }

    pub fn add(&mut self, time_ns: i64, value: i64) {
        let index = time_ns.saturating_sub(self.start_ns).max(0) / self.width_ns;
        match self.buckets.last_mut() {
            // Time that runs backwards falls into the newest bucket.
            Some(bucket) if index <= bucket.index => {
                bucket.min = bucket.min.min(value);
                bucket.max = bucket.max.max(value);
                bucket.last = value;
                bucket.sum = bucket.sum.saturating_add(value);
            }
            _ => {
                self.buckets.push(Bucket {
                    index,
                    min: value,
                    max: value,
                    last: value,
                    sum: value,
                });
                if self.buckets.len() > self.limit {
                    self.halve();
                }
            }
        }
    }

    /// Double the width until half the limit is enough.
    fn halve(&mut self) {
        while self.buckets.len() > self.limit / 2 && self.width_ns < i64::MAX / 2 {
            self.width_ns *= 2;
            let mut merged: Vec<Bucket> = Vec::with_capacity(self.buckets.len() / 2 + 1);
            for bucket in self.buckets.drain(..) {
                let index = bucket.index / 2;
                match merged.last_mut() {
                    Some(last) if last.index == index => {
                        last.min = last.min.min(bucket.min);
                        last.max = last.max.max(bucket.max);
                        last.last = bucket.last;
                        last.sum = last.sum.saturating_add(bucket.sum);
                    }
                    _ => merged.push(Bucket { index, ..bucket }),
                }
            }
            self.buckets = merged;
        }
    }

    /// When a bucket begins.
    pub fn time_ns(&self, bucket: &Bucket) -> i64 {
        self.start_ns
            .saturating_add(bucket.index.saturating_mul(self.width_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_samples_are_kept_one_by_one() {
        let mut series = Series::new(1_000, 8);
        for (time_ns, value) in [(1_000, 5), (1_001, 9), (1_001, 2), (9_000, 4)] {
            series.add(time_ns, value);
        }
        let seen: Vec<_> = series
            .buckets
            .iter()
            .map(|b| (series.time_ns(b), b.min, b.max, b.last, b.sum))
            .collect();
        assert_eq!(
            seen,
            [
                (1_000, 5, 5, 5, 5),
                (1_001, 2, 9, 2, 11),
                (9_000, 4, 4, 4, 4)
            ]
        );
    }

    proptest! {
        #[test]
        fn extremes_and_sums_survive_whatever_the_length(steps in prop::collection::vec((0i64..5_000, -1_000i64..1_000), 1..3_000)) {
            let mut series = Series::new(0, 16);
            let mut now = 0;
            for (gap, value) in &steps {
                now += gap;
                series.add(now, *value);
            }
            prop_assert!(series.buckets.len() <= 16);
            prop_assert_eq!(series.buckets.iter().map(|b| b.min).min(), steps.iter().map(|s| s.1).min());
            prop_assert_eq!(series.buckets.iter().map(|b| b.max).max(), steps.iter().map(|s| s.1).max());
            prop_assert_eq!(series.buckets.iter().map(|b| b.sum).sum::<i64>(), steps.iter().map(|s| s.1).sum::<i64>());
            prop_assert_eq!(series.buckets.last().map(|b| b.last), steps.last().map(|s| s.1));
            prop_assert!(series.buckets.windows(2).all(|pair| series.time_ns(&pair[0]) < series.time_ns(&pair[1])));
        }
    }
}
