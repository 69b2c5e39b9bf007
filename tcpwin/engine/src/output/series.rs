//! A series of bounded size: minimum, maximum and last value per time bucket; bucket width doubles when there are too
//! many.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    index: i64,
    pub min: i64,
    pub max: i64,
    pub last: i64,
    pub sum: i64,
}

/// A time span with inclusive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start_ns: i64,
    pub end_ns: i64,
}

impl Span {
    pub const ALL: Span = Span {
        start_ns: i64::MIN,
        end_ns: i64::MAX,
    };

    pub fn is_all(&self) -> bool {
        self.start_ns == i64::MIN && self.end_ns == i64::MAX
    }

    pub fn contains(&self, time_ns: i64) -> bool {
        (self.start_ns..=self.end_ns).contains(&time_ns)
    }

    /// Return the length of the overlap with the time from `from_ns` to `to_ns`.
    pub fn overlap_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let (from_ns, to_ns) = (from_ns.max(self.start_ns), to_ns.min(self.end_ns));
        to_ns.saturating_sub(from_ns).max(0)
    }
}

#[derive(Clone, Debug)]
pub struct Series {
    pub buckets: Vec<Bucket>,
    limit: usize,
    span: Span,
    /// Start of the first bucket.
    start_ns: i64,
    /// Whether a value holds until the next one.
    is_step: bool,
    /// The value in force at the start of the span.
    carried: Option<i64>,
    pub width_ns: i64,
}

impl Series {
    /// Record at most `limit` buckets within the span; the first starts with the span, or at `first_ns` if that is
    /// later. `is_step`: a value holds until the next one, and the last one before the span is carried into it.
    pub fn new(first_ns: i64, span: Span, limit: usize, is_step: bool) -> Self {
        Series {
            buckets: Vec::new(),
            limit: limit.max(2),
            span,
            start_ns: first_ns.max(span.start_ns),
            is_step,
            carried: None,
            width_ns: 1,
        }
    }

    pub fn add(&mut self, time_ns: i64, value: i64) {
        if time_ns < self.span.start_ns && self.buckets.is_empty() {
            self.carried = Some(value).filter(|_| self.is_step);
            return;
        }
        // After the clock ran backwards, a step value still counts; an instantaneous sample is outside the span.
        if time_ns < self.span.start_ns && !self.is_step {
            return;
        }
        if time_ns > self.span.start_ns {
            self.settle();
        }
        self.carried = None;
        if time_ns <= self.span.end_ns {
            self.put(time_ns, value);
        }
    }

    /// Complete the series: without any sample, the value in force at the start is recorded.
    pub fn settle(&mut self) {
        if let Some(value) = self.carried.take() {
            self.put(self.start_ns, value);
        }
    }

    fn put(&mut self, time_ns: i64, value: i64) {
        let index = time_ns.saturating_sub(self.start_ns).max(0) / self.width_ns;
        match self.buckets.last_mut() {
            // If time runs backwards, use the newest bucket.
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

    /// Double the bucket width until half the limit is sufficient.
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

    /// Start time of a bucket.
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
    fn few_samples_are_recorded_individually() {
        let mut series = Series::new(1_000, Span::ALL, 8, true);
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

    #[test]
    fn a_span_begins_with_the_value_in_force() {
        let span = Span {
            start_ns: 1_000,
            end_ns: 2_000,
        };
        let seen = |samples: &[(i64, i64)], is_step| {
            let mut series = Series::new(0, span, 8, is_step);
            for (time_ns, value) in samples {
                series.add(*time_ns, *value);
            }
            series.settle();
            let buckets = series.buckets.iter();
            buckets
                .map(|b| (series.time_ns(b), b.last))
                .collect::<Vec<_>>()
        };
        let samples = [(10, 1), (900, 2), (1_500, 3), (2_000, 4), (2_001, 5)];
        assert_eq!(seen(&samples, true), [(1_000, 2), (1_500, 3), (2_000, 4)]);
        assert_eq!(seen(&samples, false), [(1_500, 3), (2_000, 4)]);
        assert_eq!(seen(&[(10, 1), (1_000, 2)], true), [(1_000, 2)]);
        assert_eq!(seen(&[(10, 1)], true), [(1_000, 1)], "nothing came later");
        assert_eq!(seen(&[(10, 1), (5_000, 2)], true), [(1_000, 1)]);
        assert_eq!(seen(&[(5_000, 2)], true), []);
    }

    proptest! {
        #[test]
        fn extremes_and_sums_are_preserved_at_any_length(steps in prop::collection::vec((0i64..5_000, -1_000i64..1_000), 1..3_000)) {
            let mut series = Series::new(0, Span::ALL, 16, true);
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
