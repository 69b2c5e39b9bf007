"""Findings of captures that nobody here made: tshark opens the frames of each; of forty they were opened by hand.

`shown.py` holds what must be seen there; `hand_checks.toml` what was seen by hand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from stories.opened import open_capture
from stories.shown import CHECKS, Shown, belongs

from tcpwin import analyze
from tcpwin.analysis import Analysis
from tcpwin.limits import Finding

HAND_CHECKS = Path(__file__).parent / "hand_checks.toml"
FEWEST = 40
DIFFERENT = {
    # A fuzzed ACK (frame 29) is 2.8 MB ahead; this reckoning compares it with another fuzzed one. Neither is right.
    # Frames 23, 25, 32 and 34 hold 12 + 9 + 9 + 9 bytes of what was acknowledged before they came.
    # tshark passes over frame 4, whose bytes the fuzzed sequence number of frame 2 seems to hold. tcpwin is right.
    ("testing__btest__Traces__modbus__fuzz-72.pcap", "TW601"): [
        "frame 4 acknowledges nothing that was not captured",
        "252 bytes were acknowledged that no frame holds, not 2843099",
    ],
    # The file holds the packets of 2020 twice: 145 is 62 once more, 152 is 69. Connections 17 and 22 lack data that was
    # acknowledged, and as much is taken off what was not. tshark is right.
    ("tests__functional__inputs__tls.pcap", "TW506"): [
        *(
            complaint
            for frame in (145, 152, 154, 156, 158, 160, 166)
            for complaint in (f"frame {frame} sends nothing again", "sent again 0 times, not 1")
        ),
        "266 bytes were not acknowledged, not 0",
        "171 bytes were not acknowledged, not 0",
    ],
    # 78 and 82 repeat 76; told is what came after frame 81, the last that a sent. tshark is right.
    ("tests__Traces__tcp__forwardacknowledgement__fack018.trace", "TW506"): ["sent again 2 times, not 1"],
}
"""Where tcpwin and what tshark shows differ, by the capture's name and the rule; and who is right."""


@dataclass(frozen=True)
class Real:
    """The real captures, analyzed."""

    folder: Path

    @cached_property
    def analyses(self) -> dict[str, Analysis]:
        """By the path in the folder."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): analyze(path) for path in files}

    @cached_property
    def findings(self) -> dict[str, list[Finding]]:
        """By the path in the folder, of those that have any."""
        return {name: list(analysis.findings) for name, analysis in self.analyses.items() if len(analysis.findings)}


@pytest.fixture(scope="module")
def real(reference_captures: Path) -> Real:
    return Real(reference_captures / "real")


def test_the_frames_of_every_finding_show_it(real: Real, tool: Callable[[str], str]) -> None:
    tshark = tool("tshark")
    complaints: dict[tuple[str, str], list[str]] = {}
    for name, findings in real.findings.items():
        opened = open_capture(tshark, real.folder / name)
        for finding in findings:
            shown = Shown(finding, real.analyses[name], opened)
            if found := [*belongs(shown), *CHECKS[finding.code](shown)]:
                complaints.setdefault((Path(name).name, finding.code), []).extend(found)
    assert complaints == DIFFERENT


def test_hand_checks_agree_with_the_findings(real: Real) -> None:
    present = {
        (name, finding.code, finding.connection, finding.direction, finding.evidence.frames)
        for name, findings in real.findings.items()
        for finding in findings
    }
    for check in hand_checks():
        key = (*key_of(check), tuple(check["frames"]))
        expected = check["verdict"] != "wrong" or not check["mended"]
        assert (key in present) == expected, f"{key}: {check['verdict']}, look again: {check['saw']}"


def test_mended_findings_are_gone_altogether(real: Real) -> None:
    gone = {key_of(check) for check in hand_checks() if check.get("mended")}
    assert len(gone) == 5
    assert not gone & {
        (name, finding.code, finding.connection, finding.direction)
        for name, findings in real.findings.items()
        for finding in findings
    }


def test_every_rule_that_fires_was_checked_by_hand(real: Real) -> None:
    checks = hand_checks()
    assert len(checks) >= FEWEST
    assert len({(key_of(check), tuple(check["frames"])) for check in checks}) == len(checks)
    fired = {finding.code for findings in real.findings.values() for finding in findings}
    assert fired - {check["code"] for check in checks} == set()


def hand_checks() -> list[dict[str, Any]]:
    checks: list[dict[str, Any]] = tomllib.loads(HAND_CHECKS.read_text(encoding="utf-8"))["check"]
    return checks


def key_of(check: dict[str, Any]) -> tuple[Any, ...]:
    return (check["capture"], check["code"], check.get("connection"), check.get("direction"))
