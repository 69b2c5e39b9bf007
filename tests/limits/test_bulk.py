"""Verdicts computed for columns of connections equal those for single connections."""

from pathlib import Path

import numpy as np
import pytest

import tcpwin
from tcpwin.analysis import Table
from tcpwin.limits import VERDICT_FIELDS, Analysis, verdict_columns

CAPTURES = Path(__file__).parents[2] / "captures"
FOLDERS = ("lab", "wild", "broken")


def differences(analysis: Analysis, table: Table) -> list[tuple[int, str, object, object]]:
    found = []
    for connection, row in zip(analysis.connections, table.rows(), strict=True):
        for name in VERDICT_FIELDS:
            expected = getattr(connection.verdict, name)
            is_same = row[name] == (pytest.approx(expected) if isinstance(expected, float) else expected)
            if not is_same:
                found.append((connection.id, name, row[name], expected))
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_columns_say_what_the_judge_says(folder: str) -> None:
    judged = 0
    for path in sorted((CAPTURES / folder).glob("*.pcap*")):
        try:
            analysis = tcpwin.analyze(path)
        except tcpwin.TcpwinError:
            continue
        if len(analysis):
            judged += len(analysis)
            assert differences(analysis, verdict_columns(analysis, few=0)) == [], path.name
            assert differences(analysis, verdict_columns(analysis)) == [], path.name
    assert judged > 1


def test_no_value_is_masked() -> None:
    analysis = tcpwin.analyze(CAPTURES / "lab" / "zero-window-stall.pcap.gz")
    second = verdict_columns(analysis, few=0)["second_limit"]
    assert np.ma.getmaskarray(second).tolist() == [each.verdict.second_limit is None for each in analysis]
