//! ACKs on their way to a sender that is repairing a loss, to find what it knew at a retransmission.

use std::collections::VecDeque;

/// Maximum number of answers; beyond it every second one is dropped.
const MAX_ANSWERS: usize = 64;

/// Capture time and frame of an ACK.
pub type Answer = (i64, u64);

/// The newest answer, and earlier ones that may be the last to have reached the sender.
#[derive(Clone, Debug, Default)]
pub struct Answers(VecDeque<Answer>);

impl Answers {
    /// Add the newest. The sender's reaction shows here `shift_ns` later; older answers are kept no longer than that.
    pub fn note(&mut self, answer: Answer, shift_ns: i64) {
        let reached_ns = answer.0.saturating_sub(shift_ns);
        while self.0.get(1).is_some_and(|next| next.0 <= reached_ns) {
            self.0.pop_front();
        }
        if self.0.len() >= MAX_ANSWERS {
            let mut is_even = false;
            self.0.retain(|_| {
                is_even = !is_even;
                is_even
            });
        }
        self.0.push_back(answer);
    }

    /// Return the newest answer captured no later than a time.
    pub fn until(&self, time_ns: i64) -> Option<Answer> {
        self.0.iter().rev().find(|each| each.0 <= time_ns).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_had_reached_the_sender_is_found() {
        let mut answers = Answers::default();
        for time in 0..40 {
            answers.note((time * 10, time as u64), 55);
        }
        assert_eq!(answers.until(390), Some((390, 39)));
        assert_eq!(answers.until(390 - 55), Some((330, 33)));
        assert!(answers.0.len() <= 7, "older answers are dropped");
        assert_eq!(answers.until(0), None);
    }

    #[test]
    fn of_many_on_the_way_every_second_is_enough() {
        let mut answers = Answers::default();
        for time in 0..10_000 {
            answers.note((time, time as u64), 5_000);
        }
        assert!(answers.0.len() <= MAX_ANSWERS);
        let (found_ns, _) = answers.until(5_000).unwrap();
        assert!(found_ns <= 5_000);
    }
}
