//! Turns packets into segments.

use crate::capture::{MergedReader, Packet, Selection, Wanted};
use crate::output::index::write::Frames;
use crate::wire::{Outcome, ParseCounters, Segment, SegmentParser};

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 17;

#[derive(Default)]
pub(super) struct Segmenter {
    parser: SegmentParser,
    pub selection: Option<Box<Selection>>,
    packets: u64,
    next_report: u64,
    /// Whether the progress function requested a stop.
    pub was_stopped: bool,
    /// Whether no more packets are selected.
    is_over: bool,
    /// Time of the previous packet.
    last_ns: i64,
}

impl Segmenter {
    /// Use the input's selection, if it has one.
    pub fn of(input: &mut MergedReader) -> Self {
        Segmenter {
            selection: input.take_selection(),
            ..Self::default()
        }
    }

    pub fn counters(&self) -> ParseCounters {
        self.parser.counters()
    }

    /// Return the number of packets that were not selected.
    pub fn left_out(&self) -> u64 {
        self.selection.as_deref().map_or(0, Selection::left_out)
    }

    /// Return the time of the last selected packet.
    pub fn last_time_ns(&self, input: &MergedReader) -> Option<i64> {
        let last_ns = input.last_time_ns();
        match self.selection.as_deref() {
            Some(selection) => selection.last_time_ns(last_ns),
            None => last_ns,
        }
    }

    /// Fill the batch with the next segments and return their number. It is short only at the end, or when `report`,
    /// which is called periodically even if no packet holds a segment, requests a stop.
    #[inline(never)]
    pub fn fill<F: Frames>(
        &mut self,
        input: &mut MergedReader,
        batch: &mut [Segment],
        frames: &mut F,
        report: &mut impl FnMut(u64) -> bool,
    ) -> usize {
        let mut count = 0;
        while count < batch.len() && !self.is_over {
            if self.packets >= self.next_report {
                self.next_report = self.packets + REPORT_EVERY;
                if !report(input.bytes_read()) {
                    self.was_stopped = true;
                    break;
                }
            }
            input.take_run(|packet, offset| {
                let Some(out) = batch.get_mut(count) else {
                    return false;
                };
                count += usize::from(self.read(&packet, offset, frames, out));
                count < batch.len() && self.packets < self.next_report && !self.is_over
            });
            if self.is_over {
                break;
            }
            let Some(out) = batch.get_mut(count) else {
                break;
            };
            let Some((packet, offset)) = input.next_packet_at() else {
                break;
            };
            count += usize::from(self.read(&packet, offset, frames, out));
        }
        count
    }

    #[inline(always)]
    fn read<F: Frames>(
        &mut self,
        packet: &Packet<'_>,
        offset: u64,
        frames: &mut F,
        out: &mut Segment,
    ) -> bool {
        self.packets += 1;
        if let Some(selection) = &mut self.selection {
            let wanted = selection.wants(packet);
            self.is_over = wanted == Wanted::Over;
            if wanted != Wanted::Yes {
                return false;
            }
        }
        let fragments = self.parser.fragments_added();
        let outcome = self.parser.parse(packet, self.last_ns, out);
        if F::IS_WANTED {
            let is_fragment = self.parser.fragments_added() != fragments;
            frames.frame(packet.frame, offset, is_fragment, packet.time_ns.is_some());
        }
        self.last_ns = packet.time_ns.unwrap_or(self.last_ns);
        outcome == Outcome::Segment
    }
}
