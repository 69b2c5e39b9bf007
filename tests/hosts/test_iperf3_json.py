"""iperf3's JSON: complete samples against the documents."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hosts.truth_files import ANY_TEXT, TRUTH, read, read_text
from hypothesis import given
from hypothesis import strategies as st
from reference import LAB_RUNS

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.throughput import ThroughputSample

BEGIN_NS = 1795288970 * 1_000_000_000
LAB = LAB_RUNS / "iperf3_300ms_20mbit_512m2" / "meta.json"

FIRST = ThroughputSample(
    time_ns=BEGIN_NS + 1_000_087_000,
    line=1,
    run=0,
    stream=5,
    start_ns=0,
    end_ns=1_000_087_000,
    transferred_bytes=625_536,
    rate_bps=5003852.55083345,
    retransmissions=3,
    cwnd_bytes=115_840,
    snd_wnd_bytes=174_336,
    rtt_ns=302_432_000,
    rttvar_ns=20_000,
    pmtu_bytes=1500,
    side="sender",
)


def plain(**values: Any) -> ThroughputSample:
    """Return a sample of the first second without the fields of a sender's interval."""
    start: dict[str, Any] = {"time_ns": BEGIN_NS + 1_000_087_000, "line": 1, "run": 0, "stream": 5, "start_ns": 0}
    return ThroughputSample(**{**start, "end_ns": 1_000_087_000, **values})


def test_a_document_of_two_streams() -> None:
    samples, unknown = read("iperf3_json", "two-streams.json")
    assert samples == [
        FIRST,
        plain(stream=7, transferred_bytes=1000, rate_bps=7999.3, is_omitted=True, side="receiver"),
        plain(stream=None, transferred_bytes=626_536, rate_bps=5011851.5, retransmissions=3, side="sender"),
        plain(transferred_bytes=625_536, rate_bps=5003852.7, retransmissions=3, is_summary=True, side="sender"),
        plain(
            time_ns=BEGIN_NS + 1_250_000_000,
            end_ns=1_250_000_000,
            transferred_bytes=600_000,
            rate_bps=3_840_000.0,
            is_summary=True,
            side="receiver",
        ),
    ]
    assert unknown == []


def test_events_in_lines() -> None:
    samples, unknown = read("iperf3_json", "stream.jsonl")
    half = {
        "time_ns": BEGIN_NS + 500_000_000,
        "end_ns": 500_000_000,
        "transferred_bytes": 131_072,
        "rate_bps": 2_097_152.0,
        "retransmissions": 0,
        "side": "sender",
    }
    assert samples == [
        plain(
            line=2,
            cwnd_bytes=14_480,
            snd_wnd_bytes=65_536,
            rtt_ns=85_000_000,
            rttvar_ns=42_500_000,
            pmtu_bytes=1500,
            **half,
        ),
        plain(line=3, is_summary=True, **half),
    ]
    assert unknown == []


def test_documents_one_after_the_other_are_runs() -> None:
    text = (TRUTH / "iperf3_json" / "two-streams.json").read_text(encoding="utf8")
    samples, unknown = read_text("iperf3_json", text + text)
    assert [(each.run, each.line) for each in samples] == [(0, 1)] * 5 + [(1, text.count("\n") + 1)] * 5
    assert unknown == []


def test_a_document_in_one_line() -> None:
    text = (TRUTH / "iperf3_json" / "two-streams.json").read_text(encoding="utf8")
    whole, _ = read_text("iperf3_json", text)
    file = SnapshotFile(json.dumps(json.loads(text)).encode())
    assert (file.format, list(file)) == ("iperf3_json", whole)


def test_a_document_that_is_cut() -> None:
    text = (TRUTH / "iperf3_json" / "two-streams.json").read_text(encoding="utf8")
    assert read_text("iperf3_json", text[:900]) == ([], [(1, "{")])


def test_time_that_is_omitted_comes_before() -> None:
    def interval(*, is_omitted: bool) -> dict[str, Any]:
        return {"streams": [{"start": 0, "end": 1, "bytes": 1, "bits_per_second": 8, "omitted": is_omitted}]}

    start = {"timestamp": {"timesecs": 1795288970}, "test_start": {"protocol": "TCP", "omit": 1}}
    document = {"start": start, "intervals": [interval(is_omitted=True), interval(is_omitted=False)]}
    samples, _ = read_text("iperf3_json", json.dumps(document))
    second = 1_000_000_000
    assert [each.time_ns for each in samples] == [BEGIN_NS + second, BEGIN_NS + 2 * second]


def test_udp_is_passed_over() -> None:
    text = (TRUTH / "iperf3_json" / "two-streams.json").read_text(encoding="utf8").replace('"TCP"', '"UDP"')
    assert read_text("iperf3_json", text) == ([], [])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{"start":0,"end":1,"bytes":1,"bits_per_second":8,"rtt":NaN,"snd_cwnd":"7"}', (None, None)),
        ('{"start":0,"end":1,"bytes":1,"bits_per_second":8,"rtt":1e400,"snd_cwnd":7}', (None, 7)),
        ('{"start":0,"end":1,"bytes":1,"bits_per_second":8,"rtt":true,"snd_cwnd":-1}', (None, None)),
    ],
)
def test_values_that_are_not_numbers_are_left_out(row: str, expected: tuple[int | None, int | None]) -> None:
    text = f'{{"start":{{"timestamp":{{"timesecs":"x"}}}},"intervals":[{{"streams":[{row}]}},7,null]}}'
    samples, unknown = read_text("iperf3_json", text)
    assert [(each.rtt_ns, each.cwnd_bytes, each.time_ns) for each in samples] == [(*expected, None)]
    assert unknown == []


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "{" + "\n}" * 50_000, '{"start":' + "9" * 5000 + "}"]
)
def test_nonsense_is_unknown_and_soon_over(text: str) -> None:
    samples, unknown = read_text("iperf3_json", text)
    assert samples == []
    assert len(unknown) >= 1


def test_the_labs_client() -> None:
    """Every interval of a run, against the JSON read by the json module."""
    document = json.loads(LAB.read_text(encoding="utf8"))["ground_truth"]["reader"]
    file = SnapshotFile(json.dumps(document, indent="\t").encode())
    intervals = [each for each in file if not each.is_summary]
    rows = [interval["streams"][0] for interval in document["intervals"]]
    assert len(rows) >= 10
    assert [
        (each.transferred_bytes, each.rate_bps, each.retransmissions, each.cwnd_bytes, each.snd_wnd_bytes, each.rtt_ns)
        for each in intervals
    ] == [
        (
            *(row["bytes"], row["bits_per_second"], row["retransmits"], row["snd_cwnd"], row["snd_wnd"]),
            row["rtt"] * 1000,
        )
        for row in rows
    ]
    assert file.unknown.count == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["TCP", "interval", "end"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["start", "intervals", "streams", "sum", "end", "bytes", "bits_per_second", "event", "data"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_never_raises(value: Any) -> None:
    samples, _ = read_text("iperf3_json", json.dumps(value))
    assert all(isinstance(each, ThroughputSample) and math.isfinite(each.rate_bps) for each in samples)


@given(ANY_TEXT)
def test_any_text_never_raises(text: str) -> None:
    assert read_text("iperf3_json", "x" + text)[0] == []
