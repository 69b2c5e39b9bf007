//! Time-weighted distribution of a quantity: exact for few distinct values, then with a resolution that halves as
//! needed.

use std::collections::HashMap;

/// Maximum distinct values; beyond it, neighbours are merged and `step` doubles.
const MAX_VALUES: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct Histogram {
    weights: HashMap<u32, f64>,
    shift: u32,
}

impl Histogram {
    pub fn add(&mut self, value: u32, weight_ns: i64) {
        if weight_ns <= 0 {
            return;
        }
        *self.weights.entry(value >> self.shift).or_insert(0.0) += weight_ns as f64;
        while self.weights.len() > MAX_VALUES {
            self.shift += 1;
            for (value, weight) in std::mem::take(&mut self.weights) {
                *self.weights.entry(value >> 1).or_insert(0.0) += weight;
            }
        }
    }

    /// Return the largest error of a percentile, in the quantity's unit; 0 while exact.
    pub fn step(&self) -> u32 {
        (1u32 << self.shift.min(31)) - 1
    }

    /// For each share of the time, return the smallest value that the quantity did not exceed.
    pub fn percentiles(&self, shares: &[f64]) -> Vec<Option<u32>> {
        let mut values: Vec<(u32, f64)> = self
            .weights
            .iter()
            .map(|(value, weight)| (*value, *weight))
            .collect();
        values.sort_unstable_by_key(|entry| entry.0);
        let total: f64 = values.iter().map(|entry| entry.1).sum();
        shares
            .iter()
            .map(|share| {
                let wanted = share * total;
                let mut sum = 0.0;
                values
                    .iter()
                    .find(|(_, weight)| {
                        sum += weight;
                        sum >= wanted * (1.0 - 1e-12)
                    })
                    .or(values.last())
                    .map(|(value, _)| value << self.shift)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighted_by_time() {
        let mut histogram = Histogram::default();
        histogram.add(100, 90);
        histogram.add(900, 10);
        assert_eq!(
            histogram.percentiles(&[0.5, 0.9, 0.95]),
            [Some(100), Some(100), Some(900)]
        );
        assert_eq!(histogram.step(), 0);
        assert_eq!(Histogram::default().percentiles(&[0.5]), [None]);
    }

    #[test]
    fn many_values_cost_precision_not_memory() {
        let mut histogram = Histogram::default();
        for value in 0..100_000u32 {
            histogram.add(value, 1);
        }
        assert!(histogram.weights.len() <= MAX_VALUES);
        let median = histogram.percentiles(&[0.5])[0].unwrap();
        assert!(median.abs_diff(49_999) <= histogram.step() && histogram.step() < 64);
    }
}
