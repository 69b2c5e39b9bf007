//! Selects packets by time span and filter. All packets keep their frame numbers.

use super::filter::Program;
use super::packet::{LinkType, Packet};

const DAY_NS: i64 = 86_400_000_000_000;

/// One end of a time span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since the Unix epoch.
    At(i64),
    /// Nanoseconds since the first packet.
    After(i64),
    /// Nanoseconds since midnight (UTC) of the first packet's day.
    TimeOfDay(i64),
}

impl Moment {
    fn resolve(self, first_ns: i64) -> i64 {
        match self {
            Self::At(time_ns) => time_ns,
            Self::After(ns) => first_ns.saturating_add(ns),
            Self::TimeOfDay(ns) => (first_ns - first_ns.rem_euclid(DAY_NS)).saturating_add(ns),
        }
    }
}

/// Compiles the filter for a link type when its first packet arrives; `None` if that fails, which ends the read.
pub type Compile = Box<dyn FnMut(LinkType) -> Option<Program> + Send>;

/// Called periodically while packets are being skipped, when the caller gets no control; returning false ends the read.
pub type Pulse = Box<dyn FnMut() -> bool + Send>;

const PULSE_EVERY: u64 = 1 << 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Yes,
    No,
    /// No further packet can be selected.
    Over,
}

pub struct Selection {
    /// Start (inclusive) and end (exclusive).
    ends: (Option<Moment>, Option<Moment>),
    compile: Option<Compile>,
    pulse: Pulse,
    programs: Vec<(LinkType, Program)>,
    /// The resolved span, known from the first packet with a time.
    span_ns: Option<(Option<i64>, Option<i64>)>,
    /// Time of the previous packet, used for packets without one.
    last_ns: Option<i64>,
    left_out: u64,
}

impl Selection {
    pub fn new(
        ends: (Option<Moment>, Option<Moment>),
        compile: Option<Compile>,
        pulse: Pulse,
    ) -> Self {
        Self {
            ends,
            compile,
            pulse,
            programs: Vec::new(),
            span_ns: None,
            last_ns: None,
            left_out: 0,
        }
    }

    /// Decide whether a packet is selected. Call once per packet, in order.
    pub fn wants(&mut self, packet: &Packet<'_>) -> Wanted {
        let selected = if self.is_within(packet.time_ns) {
            self.matches(packet)
        } else {
            Some(false)
        };
        match selected {
            None => Wanted::Over,
            Some(true) => Wanted::Yes,
            Some(false) => {
                self.left_out += 1;
                let goes_on = self.left_out % PULSE_EVERY != 0 || (self.pulse)();
                if goes_on {
                    Wanted::No
                } else {
                    Wanted::Over
                }
            }
        }
    }

    fn is_within(&mut self, time_ns: Option<i64>) -> bool {
        self.last_ns = time_ns.or(self.last_ns);
        let Some(time_ns) = self.last_ns else {
            return self.ends == (None, None);
        };
        let ends = self.ends;
        let (start_ns, end_ns) = *self.span_ns.get_or_insert_with(|| {
            let end = |end: Option<Moment>| end.map(|end| end.resolve(time_ns));
            (end(ends.0), end(ends.1))
        });
        start_ns.is_none_or(|start_ns| start_ns <= time_ns)
            && end_ns.is_none_or(|end_ns| time_ns < end_ns)
    }

    fn matches(&mut self, packet: &Packet<'_>) -> Option<bool> {
        let Some(compile) = &mut self.compile else {
            return Some(true);
        };
        let known = self
            .programs
            .iter()
            .find(|(link_type, _)| *link_type == packet.link_type);
        if let Some((_, program)) = known {
            return Some(program.matches(packet));
        }
        let program = compile(packet.link_type)?;
        let is_taken = program.matches(packet);
        self.programs.push((packet.link_type, program));
        Some(is_taken)
    }

    /// Clamp a capture's last time to the end of the span: later silence is not known to be silence.
    pub fn last_time_ns(&self, last_ns: Option<i64>) -> Option<i64> {
        let end_ns = self.span_ns.and_then(|(_, end_ns)| end_ns);
        last_ns.map(|time_ns| end_ns.map_or(time_ns, |end_ns| time_ns.min(end_ns)))
    }

    /// Number of packets rejected so far.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(time_ns: Option<i64>) -> Packet<'static> {
        Packet {
            frame: 1,
            time_ns,
            captured: &[],
            original_len: 60,
            link_type: 1,
        }
    }

    fn wanted(
        ends: (Option<Moment>, Option<Moment>),
        times: &[Option<i64>],
    ) -> (Vec<Wanted>, Selection) {
        let mut selection = Selection::new(ends, None, Box::new(|| true));
        let found = times.iter().map(|time| selection.wants(&packet(*time)));
        (found.collect(), selection)
    }

    #[test]
    fn a_span_includes_its_start_and_excludes_its_end() {
        let ends = (Some(Moment::After(10)), Some(Moment::At(130)));
        let times = [100, 109, 110, 129, 130, 120].map(Some);
        let (found, selection) = wanted(ends, &times);
        use Wanted::{No, Yes};
        assert_eq!(found, [No, No, Yes, Yes, No, Yes]);
        assert_eq!(selection.left_out(), 3);
        assert_eq!(selection.last_time_ns(Some(500)), Some(130));
        assert_eq!(selection.last_time_ns(Some(120)), Some(120));
    }

    #[test]
    fn a_time_of_day_refers_to_the_first_packets_day() {
        let noon_ns = DAY_NS / 2;
        let ends = (Some(Moment::TimeOfDay(noon_ns)), None);
        let day = 20_000 * DAY_NS;
        let times = [day + 1, day + noon_ns, day + DAY_NS + 5].map(Some);
        assert_eq!(
            wanted(ends, &times).0,
            [Wanted::No, Wanted::Yes, Wanted::Yes]
        );
        // Also before 1970.
        assert_eq!(wanted(ends, &[Some(-1)]).0, [Wanted::Yes]);
    }

    #[test]
    fn a_packet_without_a_time_follows_the_previous_one() {
        let ends = (Some(Moment::After(5)), None);
        let times = [None, Some(0), None, Some(5), None];
        use Wanted::{No, Yes};
        assert_eq!(wanted(ends, &times).0, [No, No, No, Yes, Yes]);
    }

    #[test]
    fn an_empty_selection_selects_all_packets() {
        assert_eq!(
            wanted((None, None), &[None, Some(i64::MAX)]).0,
            [Wanted::Yes; 2]
        );
    }

    #[test]
    fn a_filter_is_compiled_once_per_link_type() {
        let (sender, seen) = std::sync::mpsc::channel();
        let compile = move |link_type| {
            sender.send(link_type).ok()?;
            // All packets of link type 1, none of 113; 9 cannot be compiled.
            (link_type != 9).then(|| Program::new(&[(6, 0, 0, u32::from(link_type == 1))]))?
        };
        let mut selection =
            Selection::new((None, None), Some(Box::new(compile)), Box::new(|| true));
        let of = |link_type| Packet {
            link_type,
            ..packet(Some(0))
        };
        let found: Vec<Wanted> = [1, 113, 1, 113, 9]
            .map(|link_type| selection.wants(&of(link_type)))
            .into();
        use Wanted::{No, Over, Yes};
        assert_eq!(found, [Yes, No, Yes, No, Over]);
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [1, 113, 9]);
    }

    #[test]
    fn the_pulse_can_stop_while_no_packet_is_selected() {
        let ends = (Some(Moment::At(i64::MAX)), None);
        let mut selection = Selection::new(ends, None, Box::new(|| false));
        let asked = (1..).find(|_| selection.wants(&packet(Some(0))) == Wanted::Over);
        assert_eq!(asked, Some(PULSE_EVERY));
    }
}
