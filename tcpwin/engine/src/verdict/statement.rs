//! The inputs of a verdict's sentences: a million verdicts have only a few hundred distinct statements.

use std::hash::{Hash, Hasher};

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
    /// The role of the end that sends a direction's data.
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
    pub meaning: Meaning,
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
        let by_b = facts.data.window_scale_disabled_by == "b";
        Statement {
            limit: judged.division.first,
            second: judged.division.second,
            also: judged.division.also,
            confidence: judged.confidence,
            standing: judged.standing,
            sender: Role::of_sender(facts),
            meaning: judged.meaning,
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

    /// Everything that distinguishes sentences. Shares are written as whole percentages, and a non-zero one below 0.5 % as
    /// such.
    fn key(&self) -> ([u8; 12], [i64; 7]) {
        let percents =
            |share: f64| (share * 100.0).round_ties_even() as i64 * 2 + i64::from(share > 0.0);
        let code = |limit: Option<Limit>| limit.map_or(u8::MAX, |limit| limit as u8);
        let (meaning, one, two) = self.meaning.parts();
        (
            [
                self.limit as u8,
                code(self.second),
                code(self.also),
                self.confidence as u8,
                self.standing as u8,
                self.sender as u8,
                meaning.as_bytes()[0],
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
                self.also_ns,
                self.stop_ns,
                one.to_bits() as i64,
                two.to_bits() as i64,
            ],
        )
    }
}

impl PartialEq for Statement {
    fn eq(&self, other: &Statement) -> bool {
        self.key() == other.key() && self.meaning.parts().0 == other.meaning.parts().0
    }
}

impl Eq for Statement {}

impl Hash for Statement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
