"""Time claimed by several findings counts under the narrower one, and the other finding says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from reference import LAB_RUNS
from report.made_findings import STALL, bundled, rule
from stories.story import Story

import tcpwin
from tcpwin.limits import ITEMS, LIMITS, Budget, Case, Evidence, Finding, Rule, Threshold, all_rules, check, choose
from tcpwin.limits.claims import Claims, narrow_first

SECOND = 1_000_000_000


def claim(case: Case) -> Iterator[Finding]:
    """Claim this many seconds."""
    cost_ns = int(case.settings["cost_ns"])
    yield case.finding(f"{case.rule.name} found", owner="nobody", confidence="possible", cost_ns=cost_ns)


def claiming(code: str, seconds: float, *yields_to: str, scope: str = "direction") -> Rule:
    """Return a rule that claims this time in every direction with data."""
    return replace(
        rule(code, f"made-{code.lower()}"),
        judge=claim,
        scope=scope,
        when=(("unique_bytes", ">", 0.0),) if scope == "direction" else (),
        thresholds={"cost_ns": Threshold(seconds * SECOND, "ns", "A made one.")},
        yields_to=yields_to,
    )


def told(analysis: tcpwin.Analysis, *rules: Rule) -> list[tuple[str, str | None, int, str]]:
    """Return code, direction, cost and text of each finding."""
    return [(each.code, each.direction, each.cost_ns, each.text) for each in check(analysis, chosen=rules)]


@pytest.fixture
def one_way(tmp_path: Path) -> tcpwin.Analysis:
    """A capture with data from a to b only."""
    return Story().handshake().burst("a", 3).wait(20.0).close().analyze(tmp_path)


def test_a_shared_part_is_subtracted(one_way: tcpwin.Analysis) -> None:
    assert told(one_way, claiming("TW901", 5, "TW902"), claiming("TW902", 2)) == [
        ("TW901", "a_to_b", 3 * SECOND, "made-tw901 found (2 s of it counted under TW902)"),
        ("TW902", "a_to_b", 2 * SECOND, "made-tw902 found"),
    ]


def test_nothing_is_left_of_time_that_another_claims_whole(one_way: tcpwin.Analysis) -> None:
    for seconds in (2, 3):
        assert told(one_way, claiming("TW901", 2, "TW902"), claiming("TW902", seconds)) == [
            ("TW902", "a_to_b", seconds * SECOND, "made-tw902 found"),
            ("TW901", "a_to_b", 0, "made-tw901 found (its time counted under TW902)"),
        ]


def test_time_the_narrower_rule_yields_is_subtracted_once(one_way: tcpwin.Analysis) -> None:
    """Of 10 s, 4 belong to the second rule, and 1 of those to the third: the first keeps 6."""
    rules = (claiming("TW901", 10, "TW902", "TW903"), claiming("TW902", 4, "TW903"), claiming("TW903", 1))
    assert told(one_way, *rules) == [
        ("TW901", "a_to_b", 6 * SECOND, "made-tw901 found (4 s of it counted under TW902 and TW903)"),
        ("TW902", "a_to_b", 3 * SECOND, "made-tw902 found (1 s of it counted under TW903)"),
        ("TW903", "a_to_b", 1 * SECOND, "made-tw903 found"),
    ]


def test_a_rule_not_chosen_claims_nothing(one_way: tcpwin.Analysis) -> None:
    assert told(one_way, claiming("TW901", 5, "TW902")) == [("TW901", "a_to_b", 5 * SECOND, "made-tw901 found")]


def test_a_finding_without_cost_takes_nothing(one_way: tcpwin.Analysis) -> None:
    assert told(one_way, claiming("TW901", 5, "TW902"), claiming("TW902", 0)) == [
        ("TW901", "a_to_b", 5 * SECOND, "made-tw901 found"),
        ("TW902", "a_to_b", 0, "made-tw902 found"),
    ]


def test_other_places_keep_their_time(one_way: tcpwin.Analysis) -> None:
    """A finding about the capture does not claim time of a direction."""
    assert told(one_way, claiming("TW901", 5, "TW902"), claiming("TW902", 2, scope="capture")) == [
        ("TW901", "a_to_b", 5 * SECOND, "made-tw901 found"),
        ("TW902", None, 2 * SECOND, "made-tw902 found"),
    ]


def test_rules_that_know_nothing_of_each_other_share_the_life(one_way: tcpwin.Analysis) -> None:
    [first, second] = check(one_way, chosen=(claiming("TW901", 15), claiming("TW902", 15)))
    assert first.cost_ns == 15 * SECOND
    assert first.cost_ns + second.cost_ns == one_way.connections[0].duration_ns


def test_a_rule_claims_only_time_of_its_limits(one_way: tcpwin.Analysis) -> None:
    items = one_way.connections[0].budget["a_to_b"].items_ns
    loss = replace(claiming("TW901", 60), limits=("path_loss",))
    rest = replace(claiming("TW902", 60), limits=tuple(limit for limit in LIMITS if limit != "path_loss"))
    found = {each.code: each for each in check(one_way, chosen=(loss, rest))}
    assert (found["TW901"].cost_ns, found["TW901"].items_ns) == (0, {})
    assert found["TW902"].cost_ns == sum(ns for item, ns in items.items() if item != "closed") > 0


def test_a_fault_explains_no_time_outside_its_span() -> None:
    """A fault took 2 s of waiting for timers: a rule that measured 3 s at other times keeps its cost."""
    items = dict.fromkeys(ITEMS, 0) | {"timeout": 10 * SECOND}
    for start_s, span_of, cost_s, said in (
        (5, None, 3, ""),
        (1, None, 1, " (2 s of it counted under TW901)"),
        # The span of one occurrence among many says nothing about the others.
        (5, "longest of 3", 1, " (2 s of it counted under TW901)"),
    ):
        claims = Claims({"a_to_b": Budget(items, items)}, 10 * SECOND)
        fault = replace(
            STALL, cost_ns=2 * SECOND, limits=("path_mtu",), evidence=Evidence(start_ns=0, end_ns=2 * SECOND)
        )
        spans = Evidence(start_ns=start_s * SECOND, end_ns=(start_s + 4) * SECOND, span_of=span_of)
        timeouts = replace(STALL, code="TW902", cost_ns=3 * SECOND, limits=("retransmission_timer",), evidence=spans)
        assert claims.settle(fault, "a_to_b").cost_ns == 2 * SECOND
        settled = claims.settle(timeouts, "a_to_b")
        assert (settled.cost_ns, settled.text.removeprefix(STALL.text)) == (cost_s * SECOND, said)


def test_each_comes_after_those_it_yields_to() -> None:
    rules = [claiming("TW901", 1, "TW903"), claiming("TW902", 1, "TW901", "TW999"), claiming("TW903", 1)]
    assert [each.code for each in narrow_first(each.outline for each in rules)] == ["TW903", "TW901", "TW902"]


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        check(bundled("keep-alive.pcap"), chosen=[claiming("TW901", 1, "TW902"), claiming("TW902", 1, "TW901")])


def test_rules_yield_to_rules_of_their_scope() -> None:
    rules = all_rules()
    order = [each.code for each in narrow_first(each.outline for each in rules.values())]
    assert sorted(order) == list(rules)
    for each in rules.values():
        assert each.code not in each.yields_to
        for code in each.yields_to:
            # A host's counters are those of its only connection, so that its finding is about a direction, too.
            assert rules[code].scope == each.scope or each.needs_hosts, (each.code, code)
            assert order.index(code) < order.index(each.code)


def test_of_the_same_rank_the_lower_code_comes_first(one_way: tcpwin.Analysis) -> None:
    rules = (claiming("TW901", 0, "TW903"), claiming("TW902", 0), claiming("TW903", 0))
    assert [code for code, *_ in told(one_way, *rules)] == ["TW901", "TW902", "TW903"]


def test_a_slow_reader_costs_what_its_closed_window_leaves() -> None:
    """At the sender: 6.1 s with the window closed, 20.5 s with one too small for the next segment."""
    folder = LAB_RUNS / "slow_reader"
    analysis = tcpwin.analyze(folder / "snd.pcap.gz", snapshots=[folder / "ss_rcv.txt"])
    data = analysis.connections[0].b_to_a
    assert round(data.zero_window_ns / SECOND, 1) == 6.1
    assert round(data.window_limited_ns / SECOND, 1) == 20.5
    costs = {each.code: each.cost_ns for each in check(analysis, chosen=choose(["TW2"]))}
    assert costs == {"TW201": data.zero_window_ns, "TW208": data.window_limited_ns}
    [alone] = check(analysis, chosen=choose(["TW208"]))
    assert alone.cost_ns == data.zero_window_ns + data.window_limited_ns
