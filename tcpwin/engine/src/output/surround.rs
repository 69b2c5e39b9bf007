//! Find the frames of the segments around given frames of a connection, as context for a finding's evidence.

use std::collections::{HashMap, VecDeque};

use super::pass::Sink;
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::{Segment, SYN};

/// A sink that collects the surrounding frames.
pub struct Surround {
    around: usize,
    by_connection: HashMap<u32, Near>,
    frames: Vec<u64>,
}

/// The frames around the given frames of one connection.
struct Near {
    /// Sorted; those before `passed` have been reached.
    frames: Vec<u64>,
    passed: usize,
    /// Preceding frames, not collected yet.
    before: VecDeque<u64>,
    /// Number of following frames still to collect.
    after: usize,
}

impl Surround {
    /// Collect `around` segments of the same connection before and after each frame.
    pub fn new(wanted: HashMap<u32, Vec<u64>>, around: usize) -> Self {
        let near = |mut frames: Vec<u64>| {
            frames.sort_unstable();
            Near {
                frames,
                passed: 0,
                before: VecDeque::new(),
                after: 0,
            }
        };
        Surround {
            around,
            by_connection: wanted
                .into_iter()
                .map(|(id, frames)| (id, near(frames)))
                .collect(),
            frames: Vec::new(),
        }
    }

    /// Return all collected frames, sorted.
    pub fn finish(self) -> Vec<u64> {
        let mut frames = self.frames;
        frames.sort_unstable();
        frames.dedup();
        frames
    }
}

impl Sink for Surround {
    fn take(&mut self, segment: &Segment, annotation: &Annotation, _: &Connection) -> bool {
        let Some(near) = self.by_connection.get_mut(&annotation.connection) else {
            return true;
        };
        let frame = segment.frame;
        while near
            .frames
            .get(near.passed)
            .is_some_and(|next| *next < frame)
        {
            near.passed += 1;
        }
        if near.frames.get(near.passed) == Some(&frame) {
            self.frames.extend(near.before.drain(..));
            self.frames.push(frame);
            near.after = self.around;
        } else if near.after > 0 {
            near.after -= 1;
            self.frames.push(frame);
        } else if segment.flags & SYN != 0 {
            // Handshake segments contain the window scales.
            self.frames.push(frame);
        } else if self.around > 0 {
            if near.before.len() >= self.around {
                near.before.pop_front();
            }
            near.before.push_back(frame);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surrounded(frames: &[u64], around: usize, of: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        let mut sink = Surround::new(HashMap::from([(0, frames.to_vec())]), around);
        let connection = Connection::new(&Segment::EMPTY, 0);
        for frame in of {
            let segment = Segment {
                frame,
                flags: if frame == 1 { SYN } else { 0 },
                ..Segment::EMPTY
            };
            let annotation = Annotation {
                connection: (frame % 2 == 0).into(),
                ..Annotation::default()
            };
            assert!(sink.take(&segment, &annotation, &connection));
        }
        sink.finish()
    }

    #[test]
    fn segments_of_the_same_connection_surround_a_frame() {
        assert_eq!(surrounded(&[21], 2, 1..=99), [1, 17, 19, 21, 23, 25]);
        assert_eq!(surrounded(&[21, 25], 1, 1..=99), [1, 19, 21, 23, 25, 27]);
        assert_eq!(surrounded(&[21], 0, 1..=99), [1, 21]);
        assert_eq!(surrounded(&[20], 2, 1..=99), [1], "of another connection");
    }
}
