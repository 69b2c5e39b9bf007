"""Verdicts on bundled captures, against results derived by hand, and on constructed budgets.

Shares are those of the budget, whose tests compare it with the kernel's counters.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.bundled import CAPTURES, READABLE
from cases import all_cases
from report.made_findings import STALL, bundled
from stories.story import Story, judged

import tcpwin
from tcpwin import _engine
from tcpwin.limits import (
    CONFIDENCES,
    ITEM_LIMITS,
    ITEMS,
    LIMITS,
    OWNERS,
    Budget,
    Connection,
    Finding,
    KernelLimits,
    Severity,
    Verdict,
    judge_connection,
    judge_directions,
)
from tcpwin.limits.columns import verdict_columns
from tcpwin.limits.tables import MENDABLE

MS = 1_000_000


def verdict_on(name: str) -> Verdict:
    """Return the verdict on the first connection, by its budget alone."""
    return judge_connection(bundled(name).connections[0])


@all_cases(
    ("name", "limit", "owner", "share", "confidence"),
    [
        ("slow-reader.pcap.gz", "receiver_application", "client_application", 0.93, "certain"),
        ("slow-reader-receiver.pcap.gz", "receiver_application", "client_application", 0.93, "likely"),
        ("zero-window-stall.pcap.gz", "receiver_application", "client_application", 0.68, "certain"),
        ("no-window-scaling.pcap.gz", "receiver_window", "client_host", 0.97, "certain"),
        ("receive-buffer-64k.pcap.gz", "receiver_window", "client_host", 0.95, "certain"),
        ("loss-1-percent.pcap.gz", "path_loss", "network", 0.99, "likely"),
        ("mid-connection.pcap.gz", "path_rate", "nobody", 1.0, "likely"),
        ("cooked-any.pcap.gz", "path_rate", "nobody", 0.72, "likely"),
        ("keep-alive.pcap", "sender_application", "server_application", 0.98, "likely"),
    ],
)
def test_verdict_by_the_budget_alone(name: str, limit: str, owner: str, share: float, confidence: str) -> None:
    verdict = verdict_on(name)
    assert (verdict.limit, verdict.owner, verdict.confidence) == (limit, owner, confidence)
    assert verdict.share == pytest.approx(share, abs=0.006)
    assert verdict.side == (owner.partition("_")[0] if "_" in owner else None)
    assert verdict.is_problem is (limit in MENDABLE)


def test_kernel_decides() -> None:
    """The sender's kernel counted 26.7 s of waiting for the window; the connection took 30.1 s."""
    connection = tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip").connections[0]
    verdict = connection.verdict
    window_ns = sum(
        connection.budget["b_to_a"].items_ns[item] for item in ("zero_window", "small_window", "window_full")
    )
    assert window_ns == pytest.approx(26.7e9, abs=0.1e9)
    assert (verdict.limit, verdict.owner, verdict.confidence) == (
        "receiver_application",
        "client_application",
        "certain",
    )
    # The application took another 1.4 s to read the received data.
    assert 26.7e9 < verdict.cost_ns < 28.2e9
    assert verdict.cost_low_ns <= verdict.cost_ns <= verdict.cost_high_ns


def made(name: str = "keep-alive.pcap", **items_ms: int) -> Connection:
    """A connection with data from b, whose sender spent this many milliseconds in each item."""
    connection = bundled(name).connections[0]
    items = {item: items_ms.get(item, 0) * MS for item in ITEMS}
    idle = {**dict.fromkeys(ITEMS, 0), "application": sum(items.values())}
    connection.__dict__["budget"] = {"a_to_b": Budget(idle, idle), "b_to_a": Budget(items, items)}
    return connection


def claiming(items_ms: Mapping[str, int], *limits: str, **others: object) -> Finding:
    """A finding on the data of b that claims this many milliseconds of each item."""
    items = {item: ms * MS for item, ms in items_ms.items()}
    finding = replace(STALL, direction="b_to_a", limits=limits, items_ns=items, cost_ns=sum(items.values()))
    return replace(finding, **others)  # type: ignore[arg-type]


TWO_THIRDS = ("send_buffer", "application", "policer")
"""Items that gain this share of their time if the path's rate is unknown (`Life.gain`)."""


@all_cases("item", [item for item in ITEMS if item != "closed"])
def test_each_items_time_is_its_limits(item: str) -> None:
    verdict = judge_connection(made(**{item: 1000}))
    assert (verdict.limit, verdict.share) == (ITEM_LIMITS[item], 1.0)
    # A connection without exchanges has no round trips to save, and idle time costs nothing.
    part = 2 / 3 if item in TWO_THIRDS else 3 / 4 if item == "path" else 0 if item in ("round_trip", "idle") else 1
    assert verdict.cost_ns == int(1000 * MS * part)
    is_lost = ITEM_LIMITS[item] in MENDABLE and item != "round_trip"
    assert verdict.lost_ns == (1000 * MS if is_lost else 0)
    assert verdict.is_problem is is_lost


def test_time_after_the_close_belongs_to_no_limit() -> None:
    verdict = judge_connection(made(closed=9000, path=1000))
    assert (verdict.limit, verdict.share) == ("path_rate", 0.1)
    assert judge_connection(made(closed=9000)).limit == "none"


def test_items_of_one_limit_are_added_up() -> None:
    verdict = judge_connection(
        made(after_loss=300, fast_recovery=200, timeout=250, tail=100, path=400, application=750)
    )
    assert (verdict.limit, verdict.share, verdict.lost_ns) == ("path_loss", 0.425, 850 * MS)


@pytest.mark.parametrize(
    ("second_ms", "is_told"),
    # Named within 10 % of the duration of the first limit, or from two thirds of it on.
    [(650, True), (601, True), (467, True), (466, False)],
)
def test_a_second_limit_of_similar_size_is_named(second_ms: int, is_told: bool) -> None:
    verdict = judge_connection(made(timeout=700, application=second_ms))
    assert verdict.second_limit == ("sender_application" if is_told else None)


def test_of_two_similar_limits_the_path_comes_last_but_before_a_window_growing_to_it() -> None:
    """A faster path carries more only up to the other limit."""
    lossy = judge_connection(made(path=700, timeout=500))
    assert (lossy.limit, lossy.second_limit) == ("path_loss", "path_rate")
    grown = judge_connection(made(path=500, congestion=700))
    assert (grown.limit, grown.second_limit) == ("path_rate", "congestion_control")
    apart = judge_connection(made(path=700, timeout=400))
    assert (apart.limit, apart.second_limit) == ("path_rate", None)


def test_two_limits_leave_less_certainty() -> None:
    assert judge_connection(made(handshake=900, path=100)).confidence == "certain"
    assert judge_connection(made(handshake=520, path=480)).confidence == "likely"


def test_losses_are_reported_when_the_application_sets_the_pace() -> None:
    """19 restarts of a round trip of 180 ms each cost 3.42 s; the rest of 40.4 s are pauses between messages."""
    verdict = bundled("idle-restart.pcap.gz").connections[0].verdict
    assert (verdict.limit, verdict.owner) == ("sender_application", "server_application")
    assert (verdict.also, verdict.code, verdict.is_problem) == ("idle_restart", "TW401", True)
    assert verdict.also_ns == verdict.lost_ns == 19 * 180 * MS
    assert verdict.fix is not None


@pytest.mark.parametrize(("lost_ms", "busy_ms", "is_problem"), [(200, 1800, True), (199, 0, False), (200, 1801, False)])
def test_a_problem_is_a_fifth_of_a_second_and_a_tenth_of_the_work(lost_ms: int, busy_ms: int, is_problem: bool) -> None:
    verdict = judge_connection(made(timeout=lost_ms, path=busy_ms, application=100_000))
    assert (verdict.is_problem, verdict.lost_ns) == (is_problem, lost_ms * MS)
    assert (verdict.also == "path_loss") is is_problem


def test_a_finding_says_which_limit_the_time_is() -> None:
    """A rule about the timer, also from another package, moves the verdict from the path to the timer."""
    finding = claiming({"timeout": 800}, "retransmission_timer", owner="server_host", side="server")
    verdict = judge_connection(made(timeout=900, path=100), [finding])
    assert (verdict.limit, verdict.owner, verdict.share) == ("retransmission_timer", "server_host", 0.8)
    assert (verdict.code, verdict.lost_ns) == (finding.code, 900 * MS)
    assert verdict.fix == (None if finding.remedy is None else finding.remedy.text)


def test_a_finding_makes_a_pause_a_loss() -> None:
    """A pause spent waiting for an ACK belongs to the receiver, not to the application."""
    finding = claiming({"application": 700}, "delayed_ack", owner="server_application", side="server")
    verdict = judge_connection(made(application=1000), [finding])
    assert (verdict.limit, verdict.is_problem, verdict.lost_ns) == ("delayed_ack", True, 700 * MS)
    assert verdict.lost_share == 1.0


def test_a_finding_of_the_same_owner_makes_it_surer_and_of_another_moves_it() -> None:
    alone = judge_connection(made(fast_recovery=900, path=100))
    surer = claiming({"fast_recovery": 900}, "path_loss", owner="network", side=None, confidence="certain")
    assert (alone.owner, alone.confidence) == ("network", "likely")
    # A certain finding of losses does not show what dropped them; one about a buffer shows whose it is.
    assert judge_connection(made(fast_recovery=900, path=100), [surer]).confidence == "likely"
    buffer = made(send_buffer=900, path=100)
    full = claiming({"send_buffer": 900}, "send_buffer", owner="server_host", side="server", confidence="certain")
    assert (judge_connection(buffer).confidence, judge_connection(buffer, [full]).confidence) == ("possible", "certain")
    refused = replace(surer, owner="client_host", side="client", text="it refused them")
    verdict = judge_connection(made(fast_recovery=900, path=100), [refused])
    assert (verdict.owner, verdict.side, verdict.confidence) == ("client_host", "client", "likely")
    assert verdict.reason == refused.text


@pytest.mark.parametrize(
    "change",
    [
        {"items_ns": {}, "cost_ns": 0},
        {"severity": Severity.INFO, "limits": ("path_loss",)},
        {"direction": "a_to_b", "items_ns": {}, "cost_ns": 0},
    ],
)
def test_a_finding_of_no_time_changes_nothing(change: dict[str, object]) -> None:
    connection = made(fast_recovery=900, path=100)
    finding = claiming({"fast_recovery": 500}, "path_loss", owner="client_host", side="client")
    assert judge_connection(connection, [replace(finding, **change)]) == judge_connection(connection)  # type: ignore[arg-type]


def test_packets_and_kernel_bound_the_cost() -> None:
    connection = made(window_full=900, path=100)
    items = connection.budget["b_to_a"].items_ns
    kernel = {**items, "window_full": 500 * MS, "congestion": 400 * MS}
    connection.__dict__["budget"]["b_to_a"] = Budget(kernel, items, KernelLimits(1000 * MS, 500 * MS, 0))
    verdict = judge_connection(connection)
    assert (verdict.cost_ns, verdict.cost_low_ns, verdict.cost_high_ns) == (500 * MS, 0, 900 * MS)


def test_the_direction_that_lost_most_speaks() -> None:
    connection = made(path=1000)
    lost = {**dict.fromkeys(ITEMS, 0), "timeout": 300 * MS, "application": 700 * MS}
    connection.__dict__["budget"]["a_to_b"] = Budget(lost, lost)
    assert judge_connection(connection).direction == "a_to_b"
    small = {**dict.fromkeys(ITEMS, 0), "timeout": 199 * MS, "application": 801 * MS}
    connection.__dict__["budget"]["a_to_b"] = Budget(small, small)
    assert judge_connection(connection).direction == "b_to_a"


def test_window_that_holds_all_of_the_data_limits_nothing() -> None:
    """On loopback a second segment of the MSS, 65,483 bytes, does not fit 65,536; answers of 1,422 bytes need none."""
    connection = bundled("many-short.pcap.gz").connections[32]
    verdict = judge_connection(connection)
    assert (verdict.limit, verdict.is_problem) == ("sender_application", False)
    assert connection.b_to_a.budget_window_full_ns == 0


def test_refused_unanswered_and_empty(tmp_path: Path) -> None:
    refused = next(each for each in bundled("many-short.pcap.gz").connections if each.close == "refused")
    verdict = judge_connection(refused)
    assert (verdict.limit, verdict.owner, verdict.direction) == ("handshake", "server_application", None)
    story = Story()
    story.step("a", "S", "<mss 1460>")
    story.wait(1.0)
    story.step("a", "S", "<mss 1460>")
    verdict = judge_connection(story.analyze(tmp_path).connections[0])
    assert (verdict.limit, verdict.owner, verdict.confidence) == ("handshake", "network", "possible")
    assert verdict.is_problem
    empty = Story().handshake().wait(0.1).close().analyze(tmp_path).connections[0]
    assert not judge_connection(empty).is_problem


def test_of_two_directions_that_lost_the_one_that_lost_more_speaks(tmp_path: Path) -> None:
    """The client waits 3 s for a closed window; the server sends more data, and waits for 1 s."""
    story = Story().handshake()
    for side, other, closed_s, segments in (("b", "a", 1.0, 40), ("a", "b", 3.0, 4)):
        story.burst(side, segments).wait(0.04).ack(other, window=0)
        story.wait(0.3).step(side, "A", seq=story.next[side] - 1)
        story.wait(0.04).ack(other, window=0)
        story.wait(closed_s).ack(other, window=500)
        story.data(side)
        story.wait(0.04).ack(other)
    analysis = story.close().analyze(tmp_path)
    [connection] = analysis
    there, back = connection.verdicts["a_to_b"], connection.verdicts["b_to_a"]
    assert there.lost_ns > back.lost_ns > 1_000_000_000
    assert connection.b_to_a.payload_bytes > connection.a_to_b.payload_bytes
    assert connection.verdict == there
    [row], [problem] = _engine.rank_connections(analysis._engine, 1)
    assert row == (*problem[:2], problem[-1])
    assert LIMITS[problem[2]] == there.limit
    assert row[0] == there.lost_ns
    assert verdict_columns(analysis, few=0)["lost_ns"][0] == there.lost_ns


@all_cases("path", READABLE, ids=lambda path: path.name)
def test_every_capture_has_verdicts_that_hold_together(path: Path) -> None:
    analysis = tcpwin.analyze(path)
    lost, lossy = _engine.rank_connections(analysis._engine, len(analysis))
    by_packets, slowed = {row[-1]: row[0] for row in lost}, {row[-1] for row in lossy}
    for connection in analysis.connections[:70]:
        for name, verdict in judge_directions(connection).items():
            budget = connection.budget[name]
            assert (verdict.limit in LIMITS, verdict.owner in OWNERS, verdict.confidence in CONFIDENCES) == (True,) * 3
            assert (verdict.side is not None) == ("_" in verdict.owner)
            assert 0 <= verdict.cost_low_ns <= verdict.cost_ns <= verdict.cost_high_ns <= budget.total_ns
            assert verdict.cost_ns <= verdict.share * budget.total_ns * (1 + 1e-9) + 1
            assert 0 <= verdict.also_ns <= verdict.lost_ns <= budget.total_ns
            assert not (verdict.is_problem and verdict.owner == "nobody" and verdict.also is None)
            assert "None" not in verdict.text
        # Many connections are ranked by the cost computed here for those without more evidence.
        if not analysis.hosts:
            by_budget = judge_connection(connection)
            assert by_packets[connection.id] == by_budget.lost_ns
            assert (connection.id in slowed) == by_budget.is_problem


@all_cases("path", READABLE, ids=lambda path: path.name)
def test_one_verdict_orders_filters_and_counts(path: Path) -> None:
    """Order, problems, summary and findings of each connection follow from its verdict."""
    analysis = tcpwin.analyze(path)
    worst = [each.id for each in analysis.worst(len(analysis))]
    assert sorted(worst) == list(range(len(analysis)))
    lost = [max(each.lost_ns for each in analysis.connections[id].verdicts.values()) for id in worst[:50]]
    assert lost == sorted(lost, reverse=True)
    told = [id for id in worst if analysis.connections[id].verdict.is_problem]
    assert set(analysis.problems) == set(told)
    assert sorted(id for ids in analysis.summary.problems.values() for id in ids) == sorted(told)
    for limit, ids in analysis.summary.problems.items():
        for id in ids:
            verdict = analysis.connections[id].verdict
            assert limit == (verdict.also or verdict.limit)


@all_cases("path", READABLE, ids=lambda path: path.name)
def test_costs_of_findings_are_parts_of_the_budget(path: Path) -> None:
    analysis = tcpwin.analyze(path)
    for connection in analysis.connections[:70]:
        left = {name: dict(budget.items_ns) for name, budget in connection.budget.items()}
        for finding in connection.findings:
            assert 0 <= finding.cost_ns <= sum(finding.items_ns.values())
            for item, ns in finding.items_ns.items():
                direction = finding.direction or judge_connection(connection).direction or "a_to_b"
                left[direction][item] -= ns
                assert left[direction][item] >= 0
        assert sum(each.cost_ns for each in connection.findings) <= connection.duration_ns


def pausing(folder: Path, *, is_multipath: bool) -> tcpwin.Analysis:
    """Send ten messages a second apart, captured at their sender; a subflow's SYNs carry MP_CAPABLE (RFC 8684)."""
    asked, answered = (",mptcp 0181", ",mptcp 01810102030405060708") if is_multipath else ("", "")
    options = (f"<mss 1460,sackOK,ws 7{asked}>", f"<mss 1460,sackOK,ws 7{answered}>")
    story = Story().handshake(options=options)
    for _ in range(10):
        story.wait(1.0).burst("a", 8, length=1400).wait(0.04).ack("b")
    return story.close().analyze(folder)


def test_a_subflow_that_is_silent_may_have_others(tmp_path: Path) -> None:
    """The application may have written to another subflow meanwhile: this one's silence is at most possible."""
    for is_multipath in (False, True):
        analysis = pausing(tmp_path, is_multipath=is_multipath)
        [connection] = analysis.connections
        verdict = connection.verdict
        assert connection.multipath is is_multipath
        assert verdict.limit == "sender_application"
        assert (verdict.confidence == "possible") is is_multipath
        assert ("other subflows" in verdict.reason) is is_multipath
        assert ("had nothing to send" in verdict.text) is not is_multipath
        assert verdict_columns(analysis)["confidence"][0] == verdict.confidence
        told = [each.confidence for each in judged(analysis, "TW402")]
        assert told == ["possible" if is_multipath else "certain"]


def test_an_analysis_is_freed_once_nobody_uses_it() -> None:
    """The inputs of a verdict's sentences keep no analysis alive: the garbage collector does not see the engine's
    memory.
    """
    analysis = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz")
    verdict, seen = analysis.connections[0].verdict, weakref.ref(analysis)
    gc.disable()
    try:
        del analysis
        assert seen() is None
    finally:
        gc.enable()
    assert verdict.reason
