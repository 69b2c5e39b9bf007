"""Rules checked, their subjects and thresholds, and the order of findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from report.made_findings import NOTE, STALL, bundled, rule
from stories.story import Story

from tcpwin.limits import Case, Evidence, Finding, Findings, Rule, Severity, Threshold, all_rules, check, choose
from tcpwin.limits.findings import KEPT_PER_RULE, rank


def codes(rules: list[Rule]) -> list[str]:
    return [each.code for each in rules]


def test_choice_of_rules() -> None:
    every = list(all_rules())
    assert codes(choose()) == every
    assert codes(choose(["TW2"])) == [code for code in every if code.startswith("TW2")]
    assert codes(choose(["zero-window-stall"])) == codes(choose(["tw201"])) == ["TW201"]
    assert codes(choose(["TW201", "TW2"])) == codes(choose(["TW2"]))
    assert codes(choose(ignore=["TW2"])) == [code for code in every if not code.startswith("TW2")]
    assert codes(choose(["TW2"], ["TW201"])) == [code for code in codes(choose(["TW2"])) if code != "TW201"]
    assert choose(["TW201"], ["TW201"]) == []


@pytest.mark.parametrize("select", [["TW999"], ["zero-window"], ["TW201", "X"]])
def test_word_that_chooses_nothing_is_refused(select: list[str]) -> None:
    with pytest.raises(ValueError, match="no rule begins with"):
        choose(select)
    with pytest.raises(ValueError, match="no rule begins with"):
        choose(ignore=select)


def test_unknown_threshold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no rule has a threshold TW201\.no_such"):
        check(bundled("keep-alive.pcap"), thresholds={"TW201.no_such": 1.0})


def many(case: Case) -> Iterator[Finding]:
    """Yield `count` findings with the costliest in the middle, in the order of discovery."""
    count = int(case.settings["count"])
    for number in range(count):
        yield case.finding(f"{number}", owner="nobody", confidence="possible", cost_ns=(number * 7) % count)


MANY = replace(rule("TW901", "made-many"), judge=many, thresholds={"count": Threshold(1500, "count", "A made one.")})


def test_most_findings_of_a_rule_are_kept_and_all_counted() -> None:
    found = check(bundled("keep-alive.pcap"), chosen=[MANY])
    assert found.counts == {"TW901": 1500}
    assert len(found) == KEPT_PER_RULE == 1000
    # 7 and 1500 are coprime, so every cost from 0 to 1499 occurs once.
    assert [each.cost_ns for each in found] == list(range(1499, 499, -1))


def test_rule_without_findings_is_not_counted() -> None:
    quiet = replace(MANY, thresholds={"count": Threshold(0, "count", "A made one.")})
    found = check(bundled("keep-alive.pcap"), chosen=[quiet])
    assert (found.found, found.counts, found.worst) == ((), {}, None)


def asked(case: Case) -> Iterator[Finding]:
    """Yield a finding about the subject."""
    connection = None if case.subject is None else case.subject.id
    yield case.finding(f"{connection} {case.direction} {case.settings}", owner="nobody", confidence="possible")


def test_a_direction_is_checked_only_if_all_conditions_hold(tmp_path: Path) -> None:
    """Side a sends 3 segments of 1460 bytes, b none."""
    analysis = Story().handshake().burst("a", 3).wait(0.05).close().analyze(tmp_path)
    bounds = {"least": Threshold(4380, "bytes", "Three segments.")}

    def texts(scope: str, *when: tuple[str, str, float | str | bool]) -> list[str]:
        made = replace(rule("TW902", "made-asked"), scope=scope, judge=asked, when=when, thresholds=bounds)
        return [each.text for each in check(analysis, chosen=[made])]

    settings = "{'least': 4380}"
    assert texts("direction", ("unique_bytes", ">=", "{least}")) == [f"0 a_to_b {settings}"]
    assert texts("direction", ("unique_bytes", ">", "{least}")) == []
    assert texts("direction", ("unique_bytes", "<=", "{least}")) == [f"0 a_to_b {settings}", f"0 b_to_a {settings}"]
    assert texts("direction", ("unique_bytes", ">=", "{least}"), ("connection.close", "==", "closed")) == [
        f"0 a_to_b {settings}"
    ]
    assert texts("direction", ("unique_bytes", ">=", "{least}"), ("connection.close", "==", "reset")) == []
    assert texts("connection", ("close", "==", "closed")) == [f"0 None {settings}"]
    assert texts("capture") == [f"None None {settings}"]


def test_order_is_cost_then_severity_then_rate_then_connection() -> None:
    plain = replace(STALL, cost_ns=0, lost_bps=None, evidence=Evidence())
    ordered = [
        replace(plain, cost_ns=2, severity=Severity.INFO),
        replace(plain, cost_ns=1, severity=Severity.ERROR),
        replace(plain, cost_ns=1, severity=Severity.WARNING),
        replace(plain, lost_bps=2.0),
        replace(plain, lost_bps=1.0),
        replace(plain, connection=3),
        replace(plain, connection=4),
    ]
    assert sorted([*ordered[4:], *ordered[:4]], key=rank, reverse=True) == ordered


def test_findings_of_one_connection() -> None:
    found = Findings((STALL, NOTE, replace(STALL, connection=7)), {"TW901": 2, "TW902": 1}, Severity.WARNING)
    assert found.of(0) == (STALL,)
    assert found.of(7) == (replace(STALL, connection=7),)
    assert found.of(1) == ()
    assert (len(found), list(found)[1], found.worst) == (3, NOTE, Severity.WARNING)


def breaking(case: Case) -> Iterator[Finding]:
    """Yield a finding, then fail like a faulty rule."""
    yield case.finding("found before the fault", owner="nobody", confidence="possible")
    raise ZeroDivisionError("division by zero")


def test_a_rule_that_fails_is_reported_and_leaves_the_others() -> None:
    broken = replace(rule("TW901", "made-broken"), judge=breaking)
    whole = choose(["TW201"])
    found = check(bundled("slow-reader.pcap.gz"), chosen=[broken, *whole])
    assert [each.code for each in found] == ["TW201", "TW901"]
    assert found.failed == ("rule TW901 (made-broken) failed: ZeroDivisionError: division by zero",)
    assert check(bundled("slow-reader.pcap.gz"), chosen=whole).failed == ()
