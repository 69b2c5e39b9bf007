"""TW413 time-lost: a problem that no other rule reports, and connections with a warning or without a problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stories.boxes import outage, waits
from stories.shown import Shown
from stories.story import judged

from tcpwin.limits import all_rules, check

HAND_CHECKS = [
    {
        "capture": "jswaro+tcprs/tests__Traces__tcp__rto__rto002.trace",
        "connection": 0,
        "direction": "b_to_a",
        "frames": [],
        "saw": "The verdict names a limit with a cost, and no other rule reports this connection.",
        "verdict": "right",
    }
]


def check_shown(shown: Shown) -> Iterator[str]:
    """The verdict has a cost."""
    if not shown.finding.cost_ns:
        yield "no time was lost"


def test_a_problem_without_a_warning_is_reported(tmp_path: Path) -> None:
    """Only this rule is chosen: the verdict alone shows the loss."""
    analysis = waits(5.0).analyze(tmp_path)
    [finding] = judged(analysis, "TW413")
    assert (finding.connection, finding.direction, str(finding.severity)) == (0, "b_to_a", "warning")
    assert finding.limits == ("path_loss",)
    assert finding.cost_ns > 15e9
    assert finding.remedy is not None


def test_a_warning_of_another_rule_suffices(tmp_path: Path) -> None:
    codes = check(waits(5.0).analyze(tmp_path)).counts
    assert "TW314" in codes
    assert "TW413" not in codes


def test_no_problem_is_no_finding(tmp_path: Path) -> None:
    quick = outage(near="b", sender="b").wait(0)
    quick.lines = quick.lines[:18]
    assert not judged(quick.analyze(tmp_path), "TW413")
    assert all_rules()["TW413"].scope == "capture"
