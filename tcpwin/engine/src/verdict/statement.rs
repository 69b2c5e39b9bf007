//! The inputs of a verdict's sentences: a million verdicts have only a few hundred distinct statements.

use crate::tables::limit::Limit;
use crate::verdict::codes::codes;
use crate::verdict::confidence::Confidence;
use crate::verdict::crossing::Witness;
use crate::verdict::facts::Facts;
use crate::verdict::judge::{Judgement, Standing};
use crate::verdict::opinion::{Fix, Meaning};
use crate::verdict::owner::End;

/// Lower ports belong to services (RFC 6335 section 6); clients use higher ones.
const WELL_KNOWN_PORTS: i64 = 1024;

codes! {
    /// The name of an end in sentences.
    Role:
    Client "client",
    Server "server",
    /// Used, with `Receiver`, if neither the handshake nor the ports show who opened the connection.
    Sender "sender",
    Receiver "receiver",
}

impl Role {
    const fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        }
    }

    /// Return the role of the end that sends a direction's data.
    fn of_sender(facts: &Facts) -> Role {
        let connection = &facts.connection;
        let ports = [connection.a_port, connection.b_port];
        let services = ports
            .iter()
            .filter(|port| **port < WELL_KNOWN_PORTS)
            .count();
        match facts.sender() {
            _ if !connection.initiator_known && services != 1 => {
                if facts.is_back == facts.is_back_main() {
                    Role::Sender
                } else {
                    Role::Receiver
                }
            }
            End::Client => Role::Client,
            End::Server => Role::Server,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Statement {
    pub limit: Limit,
    pub second: Option<Limit>,
    pub also: Option<Limit>,
    pub confidence: Confidence,
    pub standing: Standing,
    /// Role of the sending end.
    pub sender: Role,
    /// Role of the end that asks.
    pub requester: Role,
    pub meaning: Meaning,
    /// The numbers of the meaning: times, but rates for a shared path.
    pub numbers: [f64; 2],
    pub fix: Fix,
    pub witness: Witness,
    pub fix_witness: Witness,
    /// Duration of the receiver's only stop; 0 if irrelevant.
    pub stop_ns: i64,
    /// Whether the SYN without a window scale option is the sender's.
    pub is_sender_unscaled: bool,
    pub is_empty: bool,
    pub share: f64,
    pub second_share: f64,
    pub also_ns: i64,
    pub also_share: f64,
}

impl Statement {
    pub fn new(facts: &Facts, judged: &Judgement) -> Statement {
        let sender = Role::of_sender(facts);
        let by_b = facts.data.window_scale_disabled_by == "b";
        Statement {
            limit: judged.division.first,
            second: judged.division.second,
            also: judged.division.also,
            confidence: judged.confidence,
            standing: judged.standing,
            sender,
            requester: if facts.is_back {
                sender.other()
            } else {
                sender
            },
            meaning: judged.meaning,
            numbers: judged.numbers,
            fix: judged.fix,
            witness: judged.witness,
            fix_witness: judged.fix_witness,
            stop_ns: match judged.fix {
                Fix::ReadFaster => facts.data.only_stop_ns(),
                _ => 0,
            },
            is_sender_unscaled: by_b == facts.is_back,
            is_empty: judged.is_empty,
            share: judged.share(),
            second_share: judged.second_share(),
            also_ns: judged.also_ns,
            also_share: judged.also_share(),
        }
    }

    /// Return a key of everything that distinguishes sentences. They write shares as whole percentages, but distinguish
    /// 0 from a share below 0.5 %.
    pub fn key(&self) -> StatementKey {
        let percents =
            |share: f64| (share * 100.0).round_ties_even() as i64 * 2 + i64::from(share > 0.0);
        let code = |limit: Option<Limit>| limit.map_or(u8::MAX, |limit| limit as u8);
        let is_rate = self.meaning == Meaning::PathShared;
        let number = |number| {
            if is_rate {
                as_written(number, 1e3, f64::MAX)
            } else {
                written_time(number)
            }
        };
        StatementKey(
            [
                self.limit as u8,
                code(self.second),
                code(self.also),
                self.confidence as u8,
                self.standing as u8,
                self.sender as u8,
                self.requester as u8,
                self.meaning as u8,
                self.fix as u8,
                self.witness as u8,
                self.fix_witness as u8,
                u8::from(self.is_sender_unscaled),
                u8::from(self.is_empty),
            ],
            [
                percents(self.share),
                percents(self.second_share),
                percents(self.also_share),
                written_time(self.also_ns as f64),
                written_time(self.stop_ns as f64),
                number(self.numbers[0]),
                number(self.numbers[1]),
            ],
        )
    }
}

/// A key that is equal for statements with the same sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementKey([u8; 13], [i64; 7]);

/// Return the key of a time. Below 2 µs and above a minute, times are not written with three digits.
fn written_time(ns: f64) -> i64 {
    as_written(ns, 2e3, 6e10)
}

/// Return a key that is equal for numbers with the same three digits; below `least` and from `end`, only for equal
/// numbers.
///
/// Numbers share a key within half a unit of their last digit. Close to a boundary, where a division by the unit may change
/// the rounding, only equal numbers do.
fn as_written(number: f64, least: f64, end: f64) -> i64 {
    let itself = number.to_bits() as i64;
    if number < least || number >= end {
        return itself;
    }
    let mut unit = 1.0;
    while number >= 1e3 * unit {
        unit *= 10.0;
    }
    let halves = 2.0 * number / unit;
    if (halves - halves.round()).abs() < 1e-6 {
        itself
    } else {
        (halves.floor() * unit) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_read_the_same_are_the_same() {
        let is_same = |one: f64, other: f64| written_time(one) == written_time(other);
        assert!(is_same(12_351_000.0, 12_399_999.0), "12.4 ms");
        assert!(!is_same(12_349_999.0, 12_350_000.0), "12.3 and 12.4 ms");
        assert!(!is_same(1_234.0, 1_235.0) && !is_same(61e9, 61e9 + 1.0));
        assert!(!is_same(999_400.0, 9_994_000.0), "units differ");
    }
}
