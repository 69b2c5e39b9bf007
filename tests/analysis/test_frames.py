"""Features for notebooks: Arrow's C stream, pandas, findings as rows, a capture's bytes, names known to type
checkers.
"""

from pathlib import Path
from typing import get_args

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import tcpwin
from tcpwin import _engine, figures
from tcpwin.analysis import CaptureFigureName, FigureName, PercentilesName, SeriesName

CAPTURES = Path(__file__).parents[2] / "captures"
SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
MANY_SHORT = CAPTURES / "wild" / "many-short.pcap.gz"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_capture_in_memory(kind: type) -> None:
    data = MANY_SHORT.read_bytes()
    analysis = tcpwin.analyze(kind(data))
    assert analysis.name == "bytes"
    expected = tcpwin.analyze(MANY_SHORT)
    assert len(analysis) == len(expected) > 1
    # The second reading uses the same bytes.
    assert analysis.connections[1].events == expected.connections[1].events
    with pytest.raises(tcpwin.CaptureError, match="bytes: empty file"):
        tcpwin.analyze(kind(b""))


def test_connections_for_whoever_speaks_arrow() -> None:
    connections = tcpwin.analyze(MANY_SHORT).connections
    expected = connections.to_arrow()
    assert pyarrow.table(connections).equals(expected)
    assert pyarrow.RecordBatchReader.from_stream(connections).read_all().equals(expected)


def test_segments_for_whoever_speaks_arrow() -> None:
    table = tcpwin.analyze(MANY_SHORT).connections[0].segments()
    assert polars.DataFrame(table).get_column("frame").to_list() == list(table["frame"])


def test_pandas_keeps_whole_numbers_and_what_is_missing() -> None:
    connections = tcpwin.analyze(MANY_SHORT).connections
    names = ["id", "start_ns", "a_address", "a_to_b.window_scale_shift", "b_to_a.rtt_min_ns", "a_to_b.goodput_bps"]
    frame = connections.to_pandas(names)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == names
    for name in names:
        column = connections.column(name)
        assert list(frame[name].isna()) == list(np.ma.getmaskarray(column))
        assert list(frame[name].dropna()) == list(np.ma.compressed(column) if np.ma.isMA(column) else column)
    # Nanoseconds since 1970 have more digits than a float.
    assert int(frame["start_ns"].iloc[0]) == connections[0].start_ns
    assert connections[0].segments().to_pandas()["seq"].dtype == pandas.ArrowDtype(pyarrow.uint32())


def test_findings_as_rows() -> None:
    findings = tcpwin.analyze(SLOW_READER).findings
    assert findings.to_polars().equals(polars.DataFrame(findings))
    assert (
        findings.to_pandas()["code"].tolist()
        == findings.to_arrow()["code"].to_pylist()
        == [each.code for each in findings]
    )
    frame = polars.DataFrame(findings)
    assert frame.height == len(findings) > 1
    for row, finding in zip(frame.iter_rows(named=True), findings, strict=True):
        assert (row["code"], row["name"], row["severity"]) == (finding.code, finding.name, str(finding.severity))
        assert (row["connection"], row["cost_ns"], row["lost_bps"]) == (
            finding.connection,
            finding.cost_ns,
            finding.lost_bps,
        )
        assert [int(each) for each in row["frames"].split(", ")] == list(finding.evidence.frames)
        assert row["fix"] == finding.remedy.text
    assert list(findings.table().to_pandas()["code"]) == [each.code for each in findings]


def test_no_finding_is_a_table_without_rows() -> None:
    table = tcpwin.analyze(MANY_SHORT, start=10**6).findings.table()
    assert (table.height, table.to_arrow().num_rows, len(table)) == (0, 0, 13)


def test_figure_names_match_the_registry() -> None:
    assert set(get_args(FigureName)) == {"timeline", *figures.names("connection")}
    assert list(get_args(CaptureFigureName)) == list(figures.names("analysis"))


def test_names_are_the_engines() -> None:
    assert list(get_args(SeriesName)) == _engine.SERIES_NAMES
    view = tcpwin.analyze(SLOW_READER).connections[0].view()
    for name in get_args(PercentilesName):
        assert view.percentiles(name, direction="b_to_a")
