"""Findings in reference captures: tshark checks the frames of each; forty were checked by hand.

`shown.py` defines what the frames must show; `hand_checks.toml` records the manual checks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from stories.opened import open_capture
from stories.shown import CHECKS, Shown, belongs

from tcpwin import analyze
from tcpwin.limits import Analysis, Finding, all_rules

HAND_CHECKS = Path(__file__).parent / "hand_checks.toml"
FEWEST = 40
DIFFERENT = {
    # The frames contain a's acknowledged 364 bytes except 286 (frame 34, fuzzed, has another position), and b's except
    # 252. Only this calculation counts them; tcpwin is right. tshark ignores frame 4, because the fuzzed sequence
    # number of frame 2 seems to cover its bytes; tcpwin is right.
    ("testing__btest__Traces__modbus__fuzz-72.pcap", "TW601"): [
        "frame 4 acknowledges nothing that was not captured",
        "252 bytes were acknowledged that no frame holds, not 538",
    ]
}
"""Known differences between tcpwin and tshark, by capture and rule, with a judgement."""


@dataclass(frozen=True)
class Real:
    """The reference captures, analysed."""

    folder: Path

    @cached_property
    def analyses(self) -> dict[str, Analysis]:
        """Return the analyses by path in the folder."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): analyze(path) for path in files}

    @cached_property
    def findings(self) -> dict[str, list[Finding]]:
        """Return the findings by path in the folder, for captures that have any."""
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
            if found := [*belongs(shown), *check_of(finding.code)(shown)]:
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
    assert len(gone) == 14
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
    """Return the checks of the file and those that rules' tests define as `HAND_CHECKS`, with the same keys."""
    checks: list[dict[str, Any]] = tomllib.loads(HAND_CHECKS.read_text(encoding="utf-8"))["check"]
    for code in all_rules():
        checks += [{**check, "code": code} for check in own(code, "HAND_CHECKS") or []]
    return checks


@cache
def own(code: str, name: str) -> Any:
    """Return an object from a rule's test, if it defines one."""
    path = Path(__file__).parent / f"test_{code.lower()}.py"
    spec = spec_from_file_location(f"test_of_{code.lower()}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name, None)


def check_of(code: str) -> Callable[[Shown], Iterator[str]]:
    """Return the check of a rule's findings: `check_shown` of its test, or an entry of the table."""
    return own(code, "check_shown") or CHECKS[code]


def key_of(check: dict[str, Any]) -> tuple[Any, ...]:
    return (check["capture"], check["code"], check.get("connection"), check.get("direction"))
