"""Verdicts on connections and the summary of a capture: exact words, by hand from what the labs and programs did.

Shares are those of the budget, whose own tests hold it against the kernel's; sizes, counts and times are those of the
TOML beside each capture.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from analysis.bundled import CAPTURES, READABLE
from report.made_findings import STALL, bundled, found
from stories.story import Story

import tcpwin
from tcpwin.limits import GROUPS, Finding, Severity, Verdict, judge_connection, summarize
from tcpwin.limits.summary import find_held_back
from tcpwin.limits.verdict import groups_of, max_confidence, min_confidence, one_less


def verdict_on(name: str, *findings: Finding) -> Verdict:
    """Return the verdict on the first connection."""
    return judge_connection(bundled(name).connections[0], findings)


@pytest.mark.parametrize(
    ("name", "blame", "side", "limit", "confidence", "text"),
    [
        (
            "slow-reader.pcap.gz",
            "application",
            "a",
            "receiver",
            "high",
            "limited by a's receive window: 89% of its time (sure): a closed it 66 times for 6.1 s in all; "
            "its application reads too slowly",
        ),
        (
            "slow-reader-receiver.pcap.gz",
            "application",
            "a",
            "receiver",
            "medium",
            "limited by a's receive window: 90% of its time (likely): a closed it 66 times for 6.1 s in all; "
            "its application reads too slowly",
        ),
        (
            "zero-window-stall.pcap.gz",
            "application",
            "a",
            "receiver",
            "high",
            "limited by a's receive window: 69% of its time (sure): a closed it 1 time for 4.14 s in all; "
            "its application reads too slowly",
        ),
        (
            "no-window-scaling.pcap.gz",
            "receiver",
            "a",
            "receiver",
            "high",
            "limited by a's receive window: 95% of its time (sure): 65.5 kB at most, for want of the window scale "
            "option in the SYN of a",
        ),
        (
            "receive-buffer-64k.pcap.gz",
            "receiver",
            "a",
            "receiver",
            "high",
            # 8030 << 2 is 32,120 bytes; × 8 / 0.196 s.
            "limited by a's receive window: 89% of its time (sure): 32.1 kB at most, which over 196 ms allows "
            "1.31 Mbit/s",
        ),
        (
            "loss-1-percent.pcap.gz",
            "network",
            None,
            "congestion window",
            "medium",
            "limited by b's congestion window, cut by losses: 89% of its time (likely): 59 segments of 5,584 sent "
            "again",
        ),
        (
            "mid-connection.pcap.gz",
            "nobody",
            None,
            "path",
            "medium",
            "limited by the path: 100% of its time (likely): data went evenly at the best rate seen, 47.1 Mbit/s",
        ),
        (
            "cooked-any.pcap.gz",
            "nobody",
            None,
            "path",
            "medium",
            "limited by the path: 72% of its time (likely): data went evenly at the best rate seen, 78.9 Mbit/s",
        ),
        (
            "keep-alive.pcap",
            "nobody",
            None,
            "application",
            "medium",
            "limited by the applications' own pace: 100% of its time (likely): b had nothing to send for 5.6 s",
        ),
    ],
)
def test_verdict_by_the_budget_alone(
    name: str, blame: str, side: str | None, limit: str, confidence: str, text: str
) -> None:
    verdict = verdict_on(name)
    assert (verdict.blame, verdict.side, verdict.limit, verdict.confidence) == (blame, side, limit, confidence)
    assert verdict.text == text


def test_what_went_wrong_beside_the_pace_of_the_application_has_the_blame() -> None:
    """19 restarts of a round trip of 180 ms each cost 3.42 s; the rest of 40.4 s are pauses between messages."""
    verdict = verdict_on("idle-restart.pcap.gz")
    assert (verdict.blame, verdict.side, verdict.limit) == ("sender", "b", "application")
    assert verdict.why.endswith("; restarts after pauses cost 3.42 s")
    [restart] = [each for each in bundled("idle-restart.pcap.gz").findings if each.code == "TW401"]
    assert verdict_on("idle-restart.pcap.gz", restart).why.endswith("; TW401 idle-restart cost 3.42 s")


def test_kernel_decides() -> None:
    """The sender's kernel counted 26.7 s of waiting for the window; the connection took 30.1 s."""
    connection = tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip").connections[0]
    verdict = connection.verdict
    assert (verdict.blame, verdict.side, verdict.confidence) == ("application", "a", "high")
    assert verdict.share == pytest.approx(26.7 / 30.1, abs=0.005)
    assert verdict.why == (
        "a closed it 66 times for 6.1 s in all; its application reads too slowly; the share is the count of b's kernel"
    )


FOUND = replace(STALL, code="TW307", name="loss-limits-rate", direction="b_to_a", blame="network", side=None)


def test_finding_of_the_same_blame_makes_it_surer() -> None:
    assert verdict_on("loss-1-percent.pcap.gz", replace(FOUND, confidence="low")).confidence == "medium"
    assert verdict_on("loss-1-percent.pcap.gz", replace(FOUND, confidence="high")).confidence == "high"


def test_finding_about_the_limit_refines_the_blame() -> None:
    """A rule that saw the receiver's kernel refuse data knows more than the segments that were sent again."""
    refused = replace(FOUND, blame="receiver", side="a", text="a refused them", confidence="high")
    verdict = verdict_on("loss-1-percent.pcap.gz", refused)
    # That the limit is the congestion window is likely, whoever is to blame for it.
    assert (verdict.blame, verdict.side, verdict.confidence) == ("receiver", "a", "medium")
    assert verdict.why == "a refused them (TW307)"
    assert verdict_on("loss-1-percent.pcap.gz", replace(refused, confidence="low")).confidence == "low"


@pytest.mark.parametrize(
    "finding",
    [
        replace(FOUND, blame="receiver", direction="a_to_b"),
        replace(FOUND, blame="receiver", cost_ns=199_999_999),
        replace(FOUND, blame="receiver", code="TW501"),
    ],
)
def test_finding_of_something_else_changes_nothing(finding: Finding) -> None:
    assert verdict_on("loss-1-percent.pcap.gz", finding) == verdict_on("loss-1-percent.pcap.gz")


def test_contradiction_is_told() -> None:
    """The window cost nothing in 24 s of repairs: a finding of 20 s of it and the budget cannot both be right."""
    window = replace(FOUND, code="TW201", name="zero-window-stall", blame="application", side="a", cost_ns=int(20e9))
    verdict = verdict_on("loss-1-percent.pcap.gz", window)
    assert (verdict.blame, verdict.side, verdict.limit, verdict.confidence) == (
        "application",
        "a",
        "congestion window",
        "low",
    )
    assert verdict.why.endswith("; but TW201 zero-window-stall found 20 s: they do not agree")
    near = replace(window, cost_ns=int(10e9))
    assert verdict_on("loss-1-percent.pcap.gz", near) == verdict_on("loss-1-percent.pcap.gz")


def test_window_that_holds_all_of_the_data_limits_nothing() -> None:
    """On loopback a second segment of the MSS, 65,483 bytes, does not fit 65,536: answers of 1,422 need none."""
    verdict = judge_connection(bundled("many-short.pcap.gz").connections[32])
    assert (verdict.limit, verdict.blame, verdict.confidence) == ("application", "nobody", "medium")


def test_refused_unanswered_and_empty(tmp_path: Path) -> None:
    refused = next(each for each in bundled("many-short.pcap.gz").connections if each.close == "refused")
    assert judge_connection(refused).text == "carried no data: b refused it; nothing seems to listen there"
    story = Story()
    story.step("a", "S", "<mss 1460>")
    story.wait(1.0)
    story.step("a", "S", "<mss 1460>")
    verdict = judge_connection(story.analyze(tmp_path).connections[0])
    assert (verdict.blame, verdict.direction, verdict.confidence) == ("network", None, "low")
    empty = Story().handshake().wait(0.1).close().analyze(tmp_path).connections[0]
    assert judge_connection(empty).text == "carried no data: neither side sent any"


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_every_capture_has_verdicts_of_known_words(path: Path) -> None:
    analysis = tcpwin.analyze(path)
    for connection in analysis.connections[:70]:
        verdict = judge_connection(connection)
        assert verdict.limit in GROUPS
        assert 0.0 <= verdict.share <= 1.0
        assert verdict.blame in ("sender", "receiver", "network", "application", "nobody", "capture")
        assert (verdict.side is not None) == (verdict.blame in ("sender", "receiver", "application"))
        assert "None" not in verdict.text


def test_groups_by_the_longest_beginning_of_a_code() -> None:
    groups = [groups_of(replace(STALL, code=code)) for code in ("TW201", "TW210", "TW305", "TW501", "ACME001")]
    assert groups == [("receiver",), ("receiver", "congestion window", "loss recovery"), ("handshake",), (), ()]


def test_confidences_in_their_order() -> None:
    assert [one_less(each) for each in ("high", "medium", "low")] == ["medium", "low", "low"]
    assert (min_confidence("high", "low"), max_confidence("medium", "low")) == ("low", "medium")


def test_summary_of_one_connection() -> None:
    analysis = bundled("zero-window-stall.pcap.gz")
    assert summarize(analysis).text == (
        "1 connection carried 20 MB of data in 6.74 s. It was limited by a's receive window: 69% of its time (sure). "
        "That is to be changed by the application on a."
    )
    assert summarize(analysis).worst == ()
    assert summarize(analysis).held_back == {"window": (0,)}


def test_a_warning_that_cost_nothing_is_not_told_as_nothing_wrong() -> None:
    """Nobody is to blame for the pace of keep-alives."""
    analysis = bundled("keep-alive.pcap")
    free = replace(STALL, cost_ns=0)
    assert summarize(analysis, found()).text.endswith(" Nothing was seen to be wrong.")
    assert summarize(analysis, None).text.endswith(" Nothing was seen to cost it time.")
    assert summarize(analysis, found(replace(free, severity=Severity.INFO))).text.endswith(
        " Nothing was seen to be wrong."
    )
    assert summarize(analysis, found(free, free)).text.endswith(
        " What was seen to be wrong cost little or nothing: TW901 made-stall."
    )
    costly = summarize(analysis, found(STALL)).text
    assert "Nothing was seen to be wrong" not in costly
    assert "cost little" not in costly


def test_summary_names_what_to_change_first() -> None:
    analysis = bundled("keep-alive.pcap")
    summary = summarize(analysis, found(STALL, replace(STALL, cost_ns=5), replace(STALL, cost_ns=4), STALL))
    assert summary.text.endswith(
        " What cost most is TW901 made-stall of connection 0 (6.1 s). To change first: Set a larger buffer on a."
    )
    assert len(summary.worst) == 3
    nothing = summarize(analysis, found(replace(STALL, cost_ns=199_999_999)))
    assert "What cost most" not in nothing.text
    assert len(nothing.worst) == 1


def test_summary_of_many_connections() -> None:
    """90,504 bytes, by the columns."""
    analysis = bundled("many-short.pcap.gz")
    total = sum(int(analysis.connections.column(f"{name}.unique_bytes").sum()) for name in ("a_to_b", "b_to_a"))
    assert f"{total / 1e3:.1f}" == "90.5"
    assert summarize(analysis).text == (
        "65 connections carried 90.5 kB of data in 448 ms. No connection was seen to lose 200 ms and 10% of its time "
        "to a receiver's window, repairs of losses or restarts after pauses."
    )


def test_summary_counts_what_held_connections_back() -> None:
    paths = [path for path in READABLE if path.name in ("slow-reader.pcap.gz", "loss-1-percent.pcap.gz")]
    analysis = tcpwin.analyze([*paths, next(path for path in READABLE if path.name == "idle-restart.pcap.gz")])
    held_back = find_held_back(analysis)
    assert {cause: len(ids) for cause, ids in held_back.items()} == {"window": 1, "loss": 1, "idle_restart": 1}
    assert (
        "3 of them lost at least 200 ms and 10% of their time: 1 to a receiver's window (26.6 s in all), "
        "1 to repairs of losses (2.65 s in all), 1 to restarts after pauses (3.42 s in all)."
    ) in summarize(analysis).text


def test_summary_is_honest_about_the_capture() -> None:
    assert summarize(bundled("mid-connection.pcap.gz")).text.endswith(
        " The capture is not whole, so this is less sure than it reads: it lacks the beginning of 1 connection."
    )
    assert summarize(bundled("cut.pcap.gz")).text.endswith(": it is damaged.")
    assert summarize(bundled("only-a-header.pcap")).text == "The capture holds no TCP connection."


def test_summary_of_the_analysis_asks_the_rules() -> None:
    summary = bundled("slow-reader.pcap.gz").summary
    assert [each.code for each in summary.worst] == ["TW202", "TW201"]


def test_summary_of_very_many_connections_adds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless rules were asked, which cost more than reading the columns."""
    analysis = bundled("many-short.pcap.gz")
    few = summarize(analysis).text
    monkeypatch.setattr("tcpwin.limits.summary.FEW", 64)
    assert summarize(analysis, found()).text == few
    assert summarize(analysis).text == few.replace(" carried 90.5 kB of data", "")
