"""The library's functions take paths and analyses alike, tables include verdicts, and displays show the answer."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars
import pytest
from analysis.bundled import CAPTURES, analyze

import tcpwin
from tcpwin.analysis.table import MOMENTS
from tcpwin.limits import VERDICT_FIELDS
from tcpwin.paths import WhatIfError

SLOW = CAPTURES / "lab" / "slow-reader.pcap.gz"
RECEIVER = CAPTURES / "lab" / "slow-reader-receiver.pcap.gz"
MANY = CAPTURES / "wild" / "many-short.pcap.gz"


@pytest.mark.parametrize("path", [SLOW, MANY], ids=lambda path: path.name)
def test_tables_include_the_verdicts(path: Path) -> None:
    analysis = analyze(path)
    names = [f"verdict.{name}" for name in VERDICT_FIELDS]
    assert analysis.connections.column_names[-len(names) :] == names
    rows = analysis.connections.to_polars(["verdict.limit", "id", "verdict.cost_ns", "verdict.text"]).rows()
    assert rows == [(each.verdict.limit, each.id, each.verdict.cost_ns, each.verdict.text) for each in analysis]
    assert analysis.connections.column("verdict.limit").tolist() == [each.verdict.limit for each in analysis]
    assert list(analysis.connections.table(start=0, stop=1))[-1] == names[-1]
    assert analysis.connections.table(["verdict.limit"], start=2, stop=2).height == 0
    with pytest.raises(KeyError, match="nonsense"):
        analysis.connections.column("verdict.nonsense")


def test_a_part_of_many_verdicts_is_judged_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyze(MANY)
    names = ["id", *(f"verdict.{name}" for name in VERDICT_FIELDS)]
    expected = list(analysis.connections.table(names).rows())
    monkeypatch.setattr("tcpwin.limits.columns.verdict_columns.__kwdefaults__", {"start": 0, "stop": None, "few": 0})
    assert list(analysis.connections.table(names, start=3, stop=9).rows()) == expected[3:9]
    assert list(analysis.connections.table(names, start=9, stop=9).rows()) == []


def test_nanoseconds_become_times_on_request() -> None:
    connections = analyze(SLOW).connections
    [connection] = connections
    names = ["start_ns", "duration_ns", "b_to_a.first_data_ns", "b_to_a.rtt_min_ns", "verdict.cost_ns", "verdict.also"]
    frame = connections.to_polars(names, times=True)
    kinds = [frame.schema[name] for name in names]
    moment, duration = polars.Datetime("ns", "UTC"), polars.Duration("ns")
    assert kinds == [moment, duration, moment, duration, duration, polars.String]
    assert frame["duration_ns"][0] == timedelta(microseconds=connection.duration_ns / 1000)
    start = datetime.fromtimestamp(connection.start_ns // 10**9, UTC)
    assert frame["start_ns"][0].replace(microsecond=0) == start
    assert connections.to_arrow(names, times=True).schema.types[1] == "duration[ns]"
    assert connections.to_arrow(names, times=True).schema.types[5] == "string"
    assert str(connections.to_pandas(names, times=True).dtypes.iloc[0]) == "timestamp[ns, tz=UTC][pyarrow]"
    assert connections.to_polars(names)["start_ns"][0] == connection.start_ns


def test_moments_are_the_fields_that_say_so() -> None:
    from tcpwin import _engine

    described = {name: text for kind in ("connection", "direction") for name, _, text in _engine.fields(kind)}
    said = {
        name for name, text in described.items() if name.endswith("_ns") and text.startswith(("Time of ", "Start of "))
    }
    assert said == MOMENTS - {"time_ns"}


def test_a_series_is_a_table() -> None:
    series = analyze(SLOW).connections[0].series("flight", direction="b_to_a")
    frame = series.to_polars(times=True)
    assert frame.columns == ["time_ns", "min", "max", "last", "sum"]
    assert frame["max"].to_list() == series.max.tolist() == series.to_pandas()["max"].to_list()
    assert frame.schema["time_ns"] == polars.Datetime("ns", "UTC")


def test_findings_are_a_sequence() -> None:
    findings = analyze(SLOW).findings
    assert findings[0] is next(iter(findings))
    assert findings[-1:] == findings.found[-1:]
    assert findings.to_polars()["code"][0] == findings[0].code


def test_captures_are_compared_by_path_or_analysis() -> None:
    by_path = tcpwin.compare(SLOW, RECEIVER)
    by_analysis = tcpwin.compare(analyze(SLOW), tcpwin.analyze(RECEIVER))
    assert by_path.verdict == by_analysis.verdict
    assert by_path.pairs[0].changes == by_analysis.pairs[0].changes


def test_captures_are_paired_by_path_or_analysis() -> None:
    by_path = tcpwin.pair(SLOW, RECEIVER)
    by_analysis = tcpwin.pair(analyze(SLOW), RECEIVER)
    assert by_path.connections[0].directions == by_analysis.connections[0].directions
    early = tcpwin.pair(analyze(SLOW), RECEIVER, end=5)
    assert early.connections[0].directions == tcpwin.pair(SLOW, RECEIVER, end=5).connections[0].directions
    assert early.segments < by_analysis.segments
    with pytest.raises(tcpwin.SourceError, match="is not a bundle, so --capture-a cannot choose from it"):
        tcpwin.pair(analyze(SLOW), RECEIVER, capture_a="x.pcap")


def test_a_change_is_predicted_for_the_worst_connection() -> None:
    settings = {"receiver.tcp_rmem": "32M"}
    expected = tcpwin.whatif(analyze(SLOW).worst(1)[0], settings)
    assert tcpwin.whatif(SLOW, settings).prediction == expected.prediction
    assert tcpwin.whatif(analyze(SLOW), settings).prediction == expected.prediction
    with pytest.raises(tcpwin.TcpwinError, match="settings are a mapping"):
        tcpwin.whatif(SLOW, "receiver.tcp_rmem=32M")  # type: ignore[arg-type]
    with pytest.raises(WhatIfError, match="has no TCP connection"):
        tcpwin.whatif([(0.0, bytes(60))])


def test_displays_show_the_answer() -> None:
    analysis = analyze(SLOW)
    [connection] = analysis
    verdict = connection.verdict
    assert repr(verdict) == f"<Verdict: {verdict.text}>"
    assert repr(connection).endswith(f", reset. {verdict.text}>")
    assert repr(analysis).endswith(f": 4,586 packets, 1 connection. {verdict.text}>")
    for shown in (analysis, connection, verdict):
        page = shown._repr_html_()
        assert page.startswith("<p><strong>Limited by a slow reader on the client (93 %")
        assert "Make the client&#x27;s application read faster" in page


def test_displays_do_without_a_capture_that_is_gone(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap.gz"
    copy.write_bytes(MANY.read_bytes())
    analysis = tcpwin.analyze(copy)
    copy.unlink()
    assert repr(analysis).startswith(f"<Analysis of {copy}: 747 packets, 65 connections")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    connections = analyze(SLOW).connections
    for convert, extra in (
        (connections.to_polars, "tables"),
        (connections.to_arrow, "arrow"),
        (connections.to_pandas, "pandas"),
    ):
        with pytest.raises(tcpwin.OutputError, match=rf"pip install 'tcpwin\[{extra}\]'"):
            convert(["id"])  # type: ignore[operator]
