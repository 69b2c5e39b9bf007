//! Runs every query on a capture: its results must be consistent and satisfy the invariants.

use std::collections::{HashMap, HashSet};
use std::io::{sink, Cursor};

use _engine::capture::{CaptureReader, MergedReader};
use _engine::output::columns::RowColumns;
use _engine::output::detail::{Chosen, DetailSink, Extent};
use _engine::output::field::{DirectionView, Value};
use _engine::output::fields::{direction_fields, CONNECTION_FIELDS};
use _engine::output::headers::write_headers;
use _engine::output::index::NoIndex;
use _engine::output::invariants::check_capture;
use _engine::output::json::{write_connection, Layout};
use _engine::output::pass::{run, run_with, Findings, NoSink};
use _engine::output::rows::{ChosenColumns, Format, RowWriter};
use _engine::output::select::{pick, Comparison, Condition, Query};
use _engine::output::series::Span;
use _engine::output::shards::run_sharded;
use _engine::output::table::{fill_columns, Column};
use _engine::pair::{pair, NoRows};
use _engine::tcp::tracker::Tracker;
use _engine::tcp::window::scale::GivenShifts;

pub fn open(capture: &[u8]) -> Option<MergedReader> {
    let reader = CaptureReader::from_reader(Box::new(Cursor::new(capture.to_vec())), "input");
    reader.ok().map(MergedReader::from)
}

fn texts(findings: &Findings) -> Vec<String> {
    let compact = Layout::whole(true);
    let all = findings.tracker.connections.iter();
    let texts = (0..).zip(all).map(|(id, connection)| {
        let mut text = String::new();
        let budgets =
            [true, false].map(|is_from_a| DirectionView::new(connection, is_from_a).budget());
        for layout in [Layout::everything(), &compact] {
            write_connection(&mut text, layout, id, connection, &budgets);
        }
        text
    });
    texts.collect()
}

pub fn query_everything(capture: &[u8]) {
    let Some(input) = open(capture) else {
        return;
    };
    let found = check_capture(input);
    assert!(found.is_empty(), "{found:?}");

    let reopened = || open(capture).expect("opened above");
    let findings = run(reopened(), &mut NoSink, |_| true);
    let texts_before = texts(&findings);
    let count = findings.tracker.connections.len();

    let several = run_sharded(reopened(), Tracker::new(), 3, |_| true);
    assert_eq!(texts(&several), texts_before);
    assert_eq!(several.tracker.duplicates, findings.tracker.duplicates);

    let segments = findings.counters.segments;
    for format in [Format::Csv, Format::JsonLines] {
        let mut rows =
            RowWriter::new(sink(), format, None, ChosenColumns::ALL).expect("a sink takes all");
        run(reopened(), &mut rows, |_| true);
        assert_eq!(rows.rows, segments);
    }
    let mut columns = RowColumns::default();
    run(reopened(), &mut columns, |_| true);
    assert_eq!(columns.len() as u64, segments);

    query_tables(&findings, count);
    query_details(&findings, capture, count);

    // Paired with itself, every packet is found.
    let outcome = pair(
        [reopened(), reopened()],
        0,
        HashMap::new(),
        &mut NoRows,
        |_| true,
    );
    drop(outcome);
    let mut headers = Vec::new();
    let cut =
        write_headers(&mut reopened(), &mut headers, false, |_| true).expect("memory takes all");
    let of_headers = run(open(&headers).expect("a capture"), &mut NoSink, |_| true);
    assert_eq!(
        cut.packets,
        findings
            .facts
            .iter()
            .map(|facts| facts.packets)
            .sum::<u64>()
    );
    if findings
        .facts
        .iter()
        .all(|facts| facts.first_time_ns >= Some(0))
    {
        assert_eq!(texts(&of_headers), texts_before);
    }
}

fn query_tables(findings: &Findings, count: u32) {
    let connections = &findings.tracker.connections;
    let mut columns: Vec<Column> = CONNECTION_FIELDS
        .iter()
        .filter_map(|field| Column::new("connection", field.name))
        .collect();
    for group in ["a_to_b", "b_to_a"] {
        columns.extend(direction_fields().filter_map(|field| Column::new(group, field.name)));
    }
    fill_columns(&mut columns, connections, 0..count);
    let questions = direction_fields().filter_map(|field| {
        let condition = Condition::new(true, field.name, Comparison::parse(">=")?, Value::Int(0))?;
        Some(Query {
            of_directions: true,
            conditions: vec![condition],
        })
    });
    for picked in pick(questions.collect(), connections) {
        assert!(picked.len() <= 2 * count as usize);
    }
}

/// Second passes over all connections and over the last one alone, with few buckets and within a part of its life.
fn query_details(findings: &Findings, capture: &[u8], count: u32) {
    let Some(last) = count.checked_sub(1) else {
        return;
    };
    let connection = findings.tracker.by_number(last).expect("numbered");
    let (start_ns, end_ns) = (connection.start_ns, connection.end_ns);
    let middle_ns = start_ns + end_ns.saturating_sub(start_ns) / 2;
    for (ids, span, buckets) in [
        ((0..count).collect::<HashSet<_>>(), Span::ALL, 3),
        (
            HashSet::from([last]),
            Span {
                start_ns: middle_ns,
                end_ns,
            },
            1024,
        ),
    ] {
        let tracker = Tracker::rereading(&findings.tracker, &ids, GivenShifts::default());
        let extent = Extent {
            span,
            buckets,
            rows: 50,
            has_series: true,
        };
        let mut sink = DetailSink::new(Chosen::These(ids.clone()), extent);
        let input = open(capture).expect("opened above");
        let reread = run_with(input, tracker, &mut sink, &mut NoIndex, |_| true);
        assert!(findings.reads_as(&reread, &ids));
        let details = sink.finish(&reread.tracker);
        for id in details.keys() {
            assert!(ids.contains(id));
        }
    }
}
