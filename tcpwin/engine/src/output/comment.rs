//! Format the findings at a segment as a packet comment. The caller supplies the terms; the sentence is composed here,
//! as millions of segments may need one.

use std::fmt::Write;

use crate::event::{Events, MAIN_KINDS, NAMES, WITH_EVIDENCE};
use crate::tcp::recovery::cause::RetransmissionCause;
use crate::tcp::recovery::evidence::{Evidence, Kind, PARTS};
use crate::tcp::tracker::Annotation;

/// Prefix that distinguishes these comments from others in the file.
pub const PREFIX: &str = "tcpwin: ";

/// Terms supplied by the caller.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Indexed by position in [`RetransmissionCause::ALL`].
    pub causes: Vec<String>,
    /// Indexed by position in [`NAMES`].
    pub events: Vec<String>,
    /// Events that only get a comment together with others.
    pub quiet: Events,
    /// Indexed by position in [`crate::tcp::connection::stalls::CAUSES`].
    pub stalls: Vec<String>,
}

/// Return the comment for a segment, if anything noteworthy was found. `name` formats a frame number.
pub fn comment_of(
    words: &Words,
    annotation: &Annotation,
    name: impl Fn(u64) -> String,
) -> Option<String> {
    let evidence = annotation.evidence.as_ref();
    let explained = if evidence.is_some() {
        MAIN_KINDS | WITH_EVIDENCE
    } else {
        0
    };
    let events = annotation.events & !explained;
    if evidence.is_none() && events & !words.quiet == 0 && annotation.stall.is_none() {
        return None;
    }
    let mut text = String::from(PREFIX);
    let mut join = "";
    if let Some(evidence) = evidence {
        write_evidence(&mut text, words, evidence, name);
        join = "; ";
    }
    for (bit, _) in NAMES.iter().enumerate() {
        if events >> bit & 1 == 1 {
            text.push_str(join);
            text.push_str(words.events.get(bit).map_or("", String::as_str));
            join = "; ";
        }
    }
    if let Some(stall) = annotation.stall {
        let silence_ns = stall.end_ns.saturating_sub(stall.start_ns);
        let cause = words.stalls.get(stall.cause as usize);
        let cause = cause.map_or("", String::as_str);
        let silence = time_text(silence_ns);
        // Writing to a String cannot fail.
        let _ = write!(text, "{join}{silence} of silence before it: {cause}");
    }
    Some(text)
}

fn write_evidence(
    text: &mut String,
    words: &Words,
    evidence: &Evidence,
    name: impl Fn(u64) -> String,
) {
    let diagnosis = evidence.diagnosis;
    let place = RetransmissionCause::ALL
        .iter()
        .position(|known| *known == diagnosis.cause);
    let cause = place.and_then(|place| words.causes.get(place));
    text.push_str(cause.map_or("", String::as_str));
    let (confidence, reason) = (diagnosis.confidence.name(), diagnosis.reason);
    let _ = write!(text, " ({confidence}): {reason}");
    let is_late = matches!(
        diagnosis.cause,
        RetransmissionCause::OutOfOrder | RetransmissionCause::CaptureReordered
    );
    if let Some(frame) = evidence.original_frame {
        let what = if is_late {
            "overtaken by"
        } else {
            "sent before in"
        };
        let _ = write!(text, "; {what} {}", name(frame));
        if let Some(age_ns) = evidence.age_ns {
            let _ = write!(text, ", {} earlier", time_text(age_ns));
        }
    }
    if let Some(frame) = evidence.trigger_frame {
        let _ = write!(text, "; triggered by the ACK in {}", name(frame));
    }
    const IN_WORDS: [&str; 3] = ["original_frame", "age_ns", "trigger_frame"];
    for (part, value) in PARTS.iter().zip(evidence.parts()) {
        if let Some(value) = value.filter(|_| !IN_WORDS.contains(&part.name)) {
            let value = match part.kind {
                Kind::Frame => name(value as u64),
                Kind::Interval | Kind::Duration => time_text(value),
            };
            let _ = write!(text, "; {} {value}", part.heading);
        }
    }
}

/// Format a duration with three digits: `32.2 ms`, `2.07 s`.
fn time_text(ns: i64) -> String {
    const UNITS: [(&str, f64); 3] = [("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    if ns.unsigned_abs() < 1000 {
        return format!("{ns} ns");
    }
    let fits = |(_, size): &(&str, f64)| (ns as f64 / size).abs() < 999.5;
    let (unit, size) = UNITS.into_iter().find(fits).unwrap_or(("s", 1e9));
    let value = ns as f64 / size;
    let decimals = match value.abs() {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    let digits = format!("{value:.decimals$}");
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{DELAYED_ACK, FAST_RETRANSMISSION, WINDOW_FULL, ZERO_WINDOW};
    use crate::tcp::connection::stalls::{Stall, StallCause};
    use crate::tcp::recovery::cause::Diagnosis;

    fn words() -> Words {
        let named = |names: &[&str]| names.iter().map(|name| name.replace('_', " ")).collect();
        Words {
            causes: named(&RetransmissionCause::ALL.map(RetransmissionCause::name)),
            events: named(&NAMES),
            quiet: DELAYED_ACK,
            stalls: named(&crate::tcp::connection::stalls::CAUSES),
        }
    }

    fn annotation(events: Events) -> Annotation {
        Annotation {
            events,
            ..Annotation::default()
        }
    }

    fn comment(annotation: &Annotation) -> Option<String> {
        comment_of(&words(), annotation, |frame| format!("frame {frame}"))
    }

    #[test]
    fn quiet_events_are_reported_only_with_others() {
        assert_eq!(comment(&annotation(0)), None);
        assert_eq!(comment(&annotation(DELAYED_ACK)), None);
        assert_eq!(
            comment(&annotation(DELAYED_ACK | ZERO_WINDOW)).unwrap(),
            "tcpwin: zero window; delayed ack"
        );
    }

    #[test]
    fn a_cause_is_reported_once_with_its_evidence() {
        let evidence = Evidence {
            original_frame: Some(157),
            trigger_frame: Some(313),
            age_ns: Some(32_200_000),
            ..Evidence::of(Diagnosis::certain(
                RetransmissionCause::Fast,
                "three duplicate ACKs",
            ))
        };
        let stall = Stall {
            start_ns: 0,
            end_ns: 2_071_000_000,
            after_frame: 1,
            cause: StallCause::ZeroWindow,
            waiting: 0,
            flight_bytes: 0,
            window_bytes: None,
        };
        let found = Annotation {
            evidence: Some(evidence),
            stall: Some(stall),
            ..annotation(FAST_RETRANSMISSION | WINDOW_FULL)
        };
        assert_eq!(
            comment(&found).unwrap(),
            "tcpwin: fast (certain): three duplicate ACKs; sent before in frame 157, 32.2 ms earlier; \
             triggered by the ACK in frame 313; window full; 2.07 s of silence before it: zero window"
        );
    }

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (999, "999 ns"),
            (1_500, "1.5 µs"),
            (999_600, "1 ms"),
            (230_000_000, "230 ms"),
            (-32_210_000, "-32.2 ms"),
            (3_723_000_000_000, "3723 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time_text(ns), text);
        }
    }
}
