//! Invariants that must hold for the results of any capture.
//!
//! In: measured connections and, in a pass made for the purpose, all segments and series. Out: each statement that
//! contradicts another one or the packets. Regular passes do not run these checks; tests, fuzz targets and anyone who
//! doubts a number do.

mod detail;
mod fields;
mod room;
mod witness;

use std::fmt;

use crate::capture::MergedReader;
use crate::output::detail::{Chosen, DetailSink, Extent};
use crate::output::pass::{run, Findings, Sink};
use crate::output::series::Span;
use crate::tcp::tracker::Annotation;
use crate::wire::Segment;
use witness::Witness;

pub use fields::check_connection;

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub connection: u32,
    /// Set for a direction: true from the initiator, false towards it; None for the connection.
    pub from_initiator: Option<bool>,
    /// The invariant, in a fixed phrase.
    pub law: &'static str,
    /// The numbers that violate it.
    pub numbers: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.from_initiator {
            Some(true) => " a_to_b",
            Some(false) => " b_to_a",
            None => "",
        };
        let (connection, law, numbers) = (self.connection, self.law, &self.numbers);
        write!(out, "connection {connection}{direction}: {law}: {numbers}")
    }
}

/// Collects the violations of a connection or one of its directions.
struct Ledger<'a> {
    found: &'a mut Vec<Violation>,
    connection: u32,
    from_initiator: Option<bool>,
}

impl Ledger<'_> {
    fn demand(&mut self, holds: bool, law: &'static str, numbers: impl FnOnce() -> String) {
        if !holds {
            self.found.push(Violation {
                connection: self.connection,
                from_initiator: self.from_initiator,
                law,
                numbers: numbers(),
            });
        }
    }

    /// Demand that a part does not exceed its whole.
    fn demand_at_most(&mut self, law: &'static str, (name, part): Named, (of, whole): Named) {
        self.demand(part <= whole, law, || {
            format!("{name} {part} > {of} {whole}")
        });
    }

    fn demand_equal(&mut self, law: &'static str, (name, one): Named, (of, other): Named) {
        self.demand(one == other, law, || {
            format!("{name} {one} != {of} {other}")
        });
    }
}

/// A number and its name.
type Named = (&'static str, i64);

/// Check the results of a pass: fields of all connections and their recorded events.
pub fn check_findings(findings: &Findings) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, connection) in (0..).zip(findings.tracker.connections.iter()) {
        if let Some(number) = findings.tracker.number(index) {
            check_connection(number, connection, &mut found);
        }
    }
    found
}

/// Maximum buckets of a connection's series.
const BUCKETS: usize = 1024;

/// Read a capture with all its series and events, and check these, the fields and the packets against each other.
pub fn check_capture(input: MergedReader) -> Vec<Violation> {
    let extent = Extent {
        span: Span::ALL,
        buckets: BUCKETS,
        rows: 0,
        has_series: true,
    };
    let mut sink = Both {
        details: DetailSink::new(Chosen::All, extent),
        witness: Witness::default(),
    };
    let findings = run(input, &mut sink, |_| true);
    let mut found = check_findings(&findings);
    let details = sink.details.finish(&findings.tracker);
    for (number, detail) in &details {
        if let Some(connection) = findings.tracker.by_number(*number) {
            detail::check_detail(*number, connection, detail, &mut found);
            sink.witness.check(*number, connection, detail, &mut found);
        }
    }
    found.sort_by_key(|violation| violation.connection);
    found
}

/// Records details, and an independent account of the packets.
struct Both {
    details: DetailSink,
    witness: Witness,
}

impl Sink for Both {
    fn wants_budget(&self, connection: u32) -> bool {
        self.details.wants_budget(connection)
    }

    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &crate::tcp::connection::state::Connection,
    ) -> bool {
        self.witness.take(segment, annotation, connection);
        self.details.take(segment, annotation, connection)
    }
}
