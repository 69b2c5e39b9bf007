"""TW311 path-marks: congestion marks shown by the header, the echo, or the sender's CWR."""

from __future__ import annotations

from pathlib import Path

import pytest
from analysis.test_ecn import ECT_0, analyze, transfer


def findings(folder: Path, **options: object) -> list[object]:
    connection = analyze(transfer("EC", "E", **options), folder)  # type: ignore[arg-type]
    return [each for each in connection.findings if each.code == "TW311"]


def test_two_marks_are_reported_where_they_arrive(tmp_path: Path) -> None:
    [finding] = findings(tmp_path, echo="E", reduce="C")
    assert finding.confidence == "certain"  # type: ignore[attr-defined]
    assert finding.evidence.values == {"ce_segments": 2, "ece_acks": 3, "cwr_segments": 1}  # type: ignore[attr-defined]
    assert finding.cost_ns == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{"mark": ECT_0}, {"mark": ECT_0, "echo": "E", "reduce": "C"}])
def test_none_or_a_single_one_is_not(options: dict[str, object], tmp_path: Path) -> None:
    assert findings(tmp_path, **options) == []
