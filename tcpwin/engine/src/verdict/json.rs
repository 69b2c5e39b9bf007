//! Verdict, budgets and congestion control of a connection as members of a JSON object, as Python's `json` writes them.

use std::fmt::Write;

use crate::output::json::write_int;
use crate::tables::budget_item::SenderState;
use crate::tables::limit::Limit;
use crate::verdict::budget::Items;
use crate::verdict::columns::Columns;
use crate::verdict::confidence::Confidence;
use crate::verdict::owner::{End, Owner};

/// The directions, a's data first.
pub const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// The sentences of a verdict, as JSON.
pub struct Sentences {
    pub text: String,
    /// A text, or null.
    pub fix: String,
}

/// Append a verdict by its columns. Writing to a String cannot fail, so results are dropped.
pub fn write_verdict(out: &mut String, columns: &Columns, row: usize, sentences: &Sentences) {
    let limit = |code: u8| Limit::ALL.get(usize::from(code)).map(|it| it.row().name);
    let confidence = Confidence::ALL[usize::from(columns.confidence[row])];
    let owner = Owner::ALL[usize::from(columns.owner[row])];
    let side = End::ALL.get(usize::from(columns.side[row]));
    let direction = DIRECTIONS.get(usize::from(columns.direction[row]));
    macro_rules! write_fields {
        ($($name:ident $write:ident $value:expr;)*) => {
            $(
                out.push_str(concat!(", \"", stringify!($name), "\": "));
                $write(out, $value);
            )*
        };
    }
    out.push_str("\"verdict\": {\"limit\": ");
    name(out, limit(columns.limit[row]));
    // In the order of VERDICT_FIELDS.
    write_fields! {
        second_limit name limit(columns.second_limit[row]);
        share real columns.share[row];
        cost_ns write_int columns.cost_ns[row];
        cost_low_ns write_int columns.cost_low_ns[row];
        cost_high_ns write_int columns.cost_high_ns[row];
        confidence name Some(confidence.name());
        owner name Some(owner.name());
        side name side.map(|it| it.name());
        direction name direction.copied();
        fix json &sentences.fix;
        text json &sentences.text;
        lost_ns write_int columns.lost_ns[row];
        named_ns write_int columns.named_ns[row];
        also name limit(columns.also[row]);
        is_problem json if columns.is_problem[row] { "true" } else { "false" };
    }
    out.push('}');
}

/// Append the budgets of both directions; items without time are left out.
pub fn write_budgets(out: &mut String, items_ns: &[Items; 2]) {
    out.push_str("\"budget\": {");
    for (nth, (direction, items_ns)) in DIRECTIONS.iter().zip(items_ns).enumerate() {
        let separator = if nth == 0 { "" } else { ", " };
        for part in [separator, "\"", direction, "\": {\"items_ns\": {"] {
            out.push_str(part);
        }
        let mut separator = "\"";
        for item in SenderState::ALL {
            let ns = items_ns[item as usize];
            if ns != 0 {
                for part in [separator, item.row().name, "\": "] {
                    out.push_str(part);
                }
                write_int(out, ns);
                separator = ", \"";
            }
        }
        out.push_str("}, \"kernel\": null}");
    }
    out.push('}');
}

/// Append each direction's congestion control, which is JSON already; null where nothing shows it.
pub fn write_algorithms(out: &mut String, algorithms: [Option<&str>; 2]) {
    let [there, back] = algorithms.map(|it| it.unwrap_or("null"));
    let [a_to_b, b_to_a] = DIRECTIONS;
    let _ = write!(
        out,
        "\"algorithm\": {{\"{a_to_b}\": {there}, \"{b_to_a}\": {back}}}"
    );
}

fn json(out: &mut String, text: &str) {
    out.push_str(text);
}

fn name(out: &mut String, name: Option<&str>) {
    match name {
        Some(name) => {
            out.push('"');
            out.push_str(name);
            out.push('"');
        }
        None => out.push_str("null"),
    }
}

/// Append a number as Python writes it: below 0.0001, with an exponent of at least two digits.
fn real(out: &mut String, number: f64) {
    if number == 1.0 || number.to_bits() == 0 {
        out.push_str(if number == 1.0 { "1.0" } else { "0.0" });
        return;
    }
    let text = format!("{number:e}");
    let _ = match text.split_once("e-") {
        Some((digits, exponent)) if number.abs() < 1e-4 => {
            write!(out, "{digits}e-{exponent:0>2}")
        }
        _ => write!(out, "{number:?}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        for (number, text) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-4, "0.0001"),
            (9.5e-5, "9.5e-05"),
            (1e-10, "1e-10"),
        ] {
            let mut out = String::new();
            real(&mut out, number);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn items_without_time_are_left_out() {
        let mut items_ns = [Items::default(); 2];
        items_ns[1][SenderState::Path as usize] = 7;
        items_ns[1][SenderState::Closed as usize] = 8;
        let mut out = String::new();
        write_budgets(&mut out, &items_ns);
        let expected = r#""budget": {"a_to_b": {"items_ns": {}, "kernel": null}, "b_to_a": {"items_ns": {"path": 7, "closed": 8}, "kernel": null}}"#;
        assert_eq!(out, expected);
    }
}
