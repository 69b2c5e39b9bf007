//! Verdicts on many connections, from their packets alone, as columns of codes and numbers.

use std::collections::HashMap;
use std::ops::Range;

use crate::event;
use crate::output::field::DirectionView;
use crate::output::fields::close_state;
use crate::output::turns::Conversation;
use crate::tables::limit::Limit;
use crate::tcp::connection::arena::Arena;
use crate::tcp::connection::state::Connection;
use crate::verdict::budget::Items;
use crate::verdict::division::{Doubts, Loss, MIN_COST_NS};
use crate::verdict::facts::Facts;
use crate::verdict::judge::{judge, Evidence, Judgement};
use crate::verdict::statement::{Statement, StatementKey};

/// Code for a missing value.
pub const NO_CODE: u8 = u8::MAX;

/// Columns of verdicts; codes are indices into the tables of limits, confidences, owners and ends.
#[derive(Default)]
pub struct Columns {
    pub limit: Vec<u8>,
    pub second_limit: Vec<u8>,
    pub also: Vec<u8>,
    pub confidence: Vec<u8>,
    pub owner: Vec<u8>,
    pub side: Vec<u8>,
    /// 0 for a_to_b, 1 for b_to_a.
    pub direction: Vec<u8>,
    pub share: Vec<f64>,
    pub cost_ns: Vec<i64>,
    pub cost_low_ns: Vec<i64>,
    pub cost_high_ns: Vec<i64>,
    pub lost_ns: Vec<i64>,
    pub named_ns: Vec<i64>,
    pub is_problem: Vec<bool>,
    /// Index of each verdict's statement.
    pub place: Vec<u32>,
    pub statements: Vec<Statement>,
}

/// The losses of both directions of a connection, with their budgets.
pub struct Losses {
    pub items_ns: [Items; 2],
    pub loss: [Loss; 2],
    /// Whether the connection's verdict is about direction b to a.
    pub is_back: bool,
}

impl Losses {
    pub fn of(connection: &Connection) -> Losses {
        let views = [true, false].map(|is_from_a| DirectionView::new(connection, is_from_a));
        let items_ns = views.each_ref().map(DirectionView::budget);
        let has_repeated_syn = |side| connection.event_count(side, event::SYN_RETRANSMISSION) > 0;
        let turns = Conversation::of(connection).turns();
        let doubts = Doubts {
            is_disturbed: (0..2).any(has_repeated_syn) || close_state(connection) == "unanswered",
            is_stalled: false,
            is_sampled: connection.is_sampled(),
            exchanges: turns.map_or(0, |turns| i64::from(turns.exchanges)),
        };
        let mut loss = items_ns
            .each_ref()
            .map(|items_ns| Loss::of(items_ns, doubts));
        for (loss, view) in loss.iter_mut().zip(&views) {
            // A stall matters only if much time was lost but is a small share of the total, which is rare.
            if loss.lost_ns >= MIN_COST_NS && !loss.is_problem && view.end_stall().is_some() {
                let doubts = Doubts {
                    is_stalled: true,
                    ..doubts
                };
                *loss = Loss::new(loss.lost_ns, loss.busy_ns, doubts);
            }
        }
        let [there, back] = views.each_ref().map(DirectionView::carried_bytes);
        Losses {
            items_ns,
            loss,
            is_back: loss[0].is_less_than(&loss[1], back > there),
        }
    }

    pub fn is_problem(&self) -> bool {
        self.loss.iter().any(|loss| loss.is_problem)
    }

    /// Judge the direction that decides the connection's verdict.
    pub fn judge(
        &self,
        id: u32,
        connection: &Connection,
        is_capture_lossy: bool,
    ) -> (Facts, Judgement) {
        let facts = Facts::read(id, connection, self.is_back);
        let items_ns = self.items_ns[usize::from(self.is_back)];
        let evidence = Evidence {
            items_ns,
            packets_ns: items_ns,
            is_capture_lossy,
            ..Evidence::default()
        };
        let judged = judge(&facts, &evidence);
        (facts, judged)
    }
}

/// Judge the connections with these numbers.
pub fn verdict_columns(
    connections: &Arena,
    numbers: Range<u32>,
    is_capture_lossy: bool,
) -> Columns {
    let mut columns = Columns::default();
    let mut places: HashMap<StatementKey, u32> = HashMap::new();
    for (id, connection) in numbers.clone().zip(connections.range(numbers)) {
        let losses = Losses::of(connection);
        let (facts, judged) = losses.judge(id, connection, is_capture_lossy);
        let code = |limit: Option<Limit>| limit.map_or(NO_CODE, |limit| limit as u8);
        let division = &judged.division;
        columns.limit.push(division.first as u8);
        columns.second_limit.push(code(division.second));
        columns.also.push(code(division.also));
        columns.confidence.push(judged.confidence as u8);
        columns.owner.push(judged.owner as u8);
        columns
            .side
            .push(judged.side.map_or(NO_CODE, |side| side as u8));
        let is_back = u8::from(judged.is_back_limited);
        columns
            .direction
            .push(if facts.has_data() { is_back } else { NO_CODE });
        columns.share.push(judged.share());
        columns.cost_ns.push(judged.cost_ns);
        columns.cost_low_ns.push(judged.cost_low_ns);
        columns.cost_high_ns.push(judged.cost_high_ns);
        columns.lost_ns.push(division.loss.lost_ns);
        columns.named_ns.push(judged.named_ns());
        columns.is_problem.push(losses.is_problem());
        let statement = Statement::new(&facts, &judged);
        let statements = &mut columns.statements;
        let place = *places.entry(statement.key()).or_insert_with(|| {
            statements.push(statement);
            statements.len() as u32 - 1
        });
        columns.place.push(place);
    }
    columns
}
