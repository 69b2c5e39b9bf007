"""The same workload before and after a change: matching connections, differences, and the overall result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cases import all_cases
from report.made_findings import NOTE, STALL, bundled, found
from stories.story import Story, closed_for

import tcpwin
from tcpwin.limits import Change, Comparison, FindingChange, Findings, compare
from tcpwin.limits import comparison as module
from tcpwin.limits.pairs import LOOK_AHEAD, Match, Shape, is_similar, pair

NOBODY = Findings()
SEGMENT = 1460


def transfer(
    port: int = 40_000, *, rounds: int = 8, segments: int = 10, rtt: float = 0.04, start: float = 0.0
) -> Story:
    """a sends rounds of segments, each acknowledged a round trip after its first segment: 116,800 bytes in 320 ms."""
    story = Story(now=start).setting(f"port a {port}").handshake(rtt)
    for _ in range(rounds):
        began = story.now
        story.burst("a", segments)
        story.now = began + rtt
        story.ack("b")
    return story


def capture(folder: Path, *stories: Story) -> tcpwin.Analysis:
    """Analyse several connections that run at the same time."""
    folder.mkdir(exist_ok=True)
    return tcpwin.analyze([story.write(folder, f"story{number}") for number, story in enumerate(stories)])


def compared(
    folder: Path, old: list[Story], new: list[Story], old_findings: Findings = NOBODY, new_findings: Findings = NOBODY
) -> Comparison:
    return compare(
        capture(folder / "old", *old),
        capture(folder / "new", *new),
        old_findings=old_findings,
        new_findings=new_findings,
    )


def test_every_change_of_one_pair(tmp_path: Path) -> None:
    """Twice the data in each round trip: 116,800 bytes in 320 ms, then in 160 ms."""
    found = compared(tmp_path, [transfer()], [transfer(segments=20, rounds=4)])
    [each] = found.pairs
    assert each.match == Match(0, 0, is_similar=True)
    assert (each.server, each.direction, each.volume_bytes, each.verdict) == (
        "10.0.0.2:9000",
        "a_to_b",
        116_800,
        "better",
    )
    # The handshake takes 40 ms. The last of 10 segments leaves 0.9 ms after the first (of 20: 1.9 ms), and is
    # acknowledged 39.1 (38.1) ms later, the minimum round trip; the message ends half of that after its last segment.
    assert each.changes == (
        Change("goodput_bps", 2_920_000.0, 5_840_000.0, "better"),
        Change("message_delay_p95_ns", 280_900_000 + 39_100_000 // 2, 121_900_000 + 38_100_000 // 2),
        Change("volume_bytes", 116_800, 116_800),
        Change("duration_ns", 360_000_000, 200_000_000),
        Change("path_rtt_ns", 39_100_000, 38_100_000),
        Change("receive_window_max_bytes", 65_160, 65_160),
        Change("retransmissions", 0, 0),
        Change("stall_ns", 0, 0),
        Change("zero_window_ns", 0, 0),
        Change("resent_share", 0.0, 0.0, "same"),
        Change("lost_ns", 0, 0, "same"),
    )
    assert found == Comparison(
        verdict="better",
        pairs=found.pairs,
        counts={"better": 1, "worse": 0, "same": 0, "mixed": 0},
        unmatched_old=(),
        unmatched_new=(),
        unmatched_old_count=0,
        unmatched_new_count=0,
        goodput_ratio=2.0,
        path_changes=0,
        findings=(),
    )


def test_the_reverse_is_worse_and_itself_the_same(tmp_path: Path) -> None:
    found = compared(tmp_path, [transfer(segments=20, rounds=4)], [transfer()])
    assert (found.verdict, found.goodput_ratio, found.pairs[0].verdict) == ("worse", 0.5, "worse")
    found = compared(tmp_path, [transfer()], [transfer()])
    assert (found.verdict, found.goodput_ratio, found.pairs[0].verdict) == ("same", 1.0, "same")


@pytest.mark.parametrize(("rtt", "verdict"), [(0.044, "same"), (0.045, "worse"), (0.0365, "same"), (0.036, "better")])
def test_a_tenth_is_the_same(tmp_path: Path, rtt: float, verdict: str) -> None:
    """40 ms per round against 44 ms: 9.1 % less; 45 ms: 11.1 % less; 36.5 ms: 9.6 % more; 36 ms: 11.1 % more."""
    assert compared(tmp_path, [transfer()], [transfer(rtt=rtt)]).verdict == verdict


def test_tolerance_can_be_set(tmp_path: Path) -> None:
    old, new = capture(tmp_path / "old", transfer()), capture(tmp_path / "new", transfer(rtt=0.044))
    both = {"old_findings": NOBODY, "new_findings": NOBODY}
    assert compare(old, new, tolerance=0.09, **both).verdict == "worse"
    assert compare(new, old, tolerance=0.1, **both).verdict == "same"


def test_a_different_path_is_reported(tmp_path: Path) -> None:
    """The round trip grows from 40 to 60 ms, by half and by more than 5 ms; from 4 to 8 ms it is less than 5 ms."""
    assert compared(tmp_path, [transfer()], [transfer(rtt=0.06)]).path_changes == 1
    assert compared(tmp_path, [transfer(rtt=0.004)], [transfer(rtt=0.008)]).path_changes == 0


def test_rates_of_small_transfers_are_not_compared(tmp_path: Path) -> None:
    """14,600 bytes in one round and in two: half the rate, but too little data to judge."""
    found = compared(tmp_path, [transfer(rounds=1)], [transfer(rounds=2, segments=5)])
    goodput = found.pairs[0].change("goodput_bps")
    assert goodput == Change("goodput_bps", 2_920_000.0, 1_460_000.0, None)
    assert (found.verdict, found.goodput_ratio) == ("same", None)


def messages(rounds: int, *, count: int = 12, segments: int = 20) -> Story:
    """Messages of 29,200 bytes, a second apart, each taking this many round trips of 40 ms."""
    story = Story().handshake()
    for _ in range(count):
        for _ in range(rounds):
            began = story.now
            story.burst("a", segments // rounds)
            story.now = began + 0.04
            story.ack("b")
        story.wait(1.0)
    return story.close()


def test_delay_of_messages_is_judged(tmp_path: Path) -> None:
    """Idle restarts cost a round trip per message; the rate hardly changes, because the pauses are much longer."""
    found = compared(tmp_path, [messages(2)], [messages(1)])
    [each] = found.pairs
    assert each.change("goodput_bps").verdict == "same"
    assert each.change("message_delay_p95_ns").verdict == "better"
    assert (each.verdict, found.verdict) == ("better", "better")
    assert compared(tmp_path, [messages(1)], [messages(2)]).verdict == "worse"


@pytest.mark.parametrize(
    ("old", "new"),
    [(messages(2, count=4), messages(1, count=4)), (messages(2), messages(1, segments=12))],
    ids=["few", "other-sizes"],
)
def test_delay_of_few_or_other_messages_is_not_judged(tmp_path: Path, old: Story, new: Story) -> None:
    change = compared(tmp_path, [old], [new]).pairs[0].change("message_delay_p95_ns")
    assert change.old is not None
    assert change.new is not None
    assert change.verdict is None


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, "worse"), (0.21, "worse"), (0.19, "same")])
def test_lost_time_is_judged_where_no_rate_is(tmp_path: Path, seconds: float, verdict: str) -> None:
    found = compared(tmp_path, [closed_for(0.0)], [closed_for(seconds)])
    [each] = found.pairs
    # A window that opens at the moment it closed was closed for 0 ns.
    assert each.change("zero_window_ns") == Change("zero_window_ns", 0, round(seconds * 1e9))
    assert each.change("lost_ns").verdict == verdict
    if seconds == 1.0:
        assert each.new_verdict.limit == "receiver_application"
    assert (each.verdict, found.verdict) == (verdict, verdict)


def resent(times: int) -> Story:
    """200 segments, of which this many are retransmitted 300 ms after all were sent."""
    story = Story().handshake()
    for number in range(200):
        story.data("a")
        story.wait(0.001)
        if number % 10 == 9:
            story.ack("b")
    for number in range(times):
        story.wait(0.3)
        story.step("a", "A", f"len {SEGMENT}", seq=1 + number * SEGMENT)
        story.wait(0.001)
        story.ack("b")
    return story.wait(0.1).close()


@pytest.mark.parametrize(("times", "verdict"), [(1, "worse"), (0, "same")])
def test_bytes_sent_again_are_a_share(tmp_path: Path, times: int, verdict: str) -> None:
    """One of 200 segments is the threshold of 0.5 %."""
    change = compared(tmp_path, [resent(0)], [resent(times)]).pairs[0].change("resent_share")
    assert change == Change("resent_share", 0.0, times / 200, verdict)


def test_findings_gone_new_and_changed(tmp_path: Path) -> None:
    stall = replace(STALL, direction="a_to_b")
    before = found(stall, replace(stall, code="TW903"), replace(stall, code="TW904"), NOTE)
    after = found(
        replace(stall, cost_ns=1_000_000_000),
        replace(stall, code="TW904", cost_ns=6_200_000_000),
        replace(stall, code="TW905", cost_ns=0, lost_bps=1e6),
    )
    comparison = compared(tmp_path, [transfer()], [transfer()], before, after)
    assert comparison.pairs[0].findings == (
        FindingChange("TW903", "made-stall", "a_to_b", 1, 0, 6_100_000_000, 0, 0.0, 0.0, "better"),
        FindingChange("TW901", "made-stall", "a_to_b", 1, 1, 6_100_000_000, 1_000_000_000, 0.0, 0.0, "better"),
        FindingChange("TW904", "made-stall", "a_to_b", 1, 1, 6_100_000_000, 6_200_000_000, 0.0, 0.0, "same"),
        FindingChange("TW905", "made-stall", "a_to_b", 0, 1, 0, 0, 0.0, 1e6, "worse"),
    )
    assert [each.kind for each in comparison.pairs[0].findings] == ["gone", "stays", "stays", "new"]
    assert (comparison.pairs[0].verdict, comparison.verdict) == ("mixed", "same")
    whole = {each.code: each for each in comparison.findings}
    assert list(whole) == ["TW903", "TW901", "TW904", "TW902", "TW905"]
    # Severity info is shown but not judged.
    assert whole["TW902"] == FindingChange("TW902", "made-note", None, 1, 0, 0, 0, 93_500_000.0, 0.0, None)


def test_rate_goes_before_findings(tmp_path: Path) -> None:
    """A faster transfer with a new finding is better: the finding is the new limit."""
    comparison = compared(
        tmp_path, [transfer()], [transfer(segments=20, rounds=4)], NOBODY, found(replace(STALL, direction="a_to_b"))
    )
    assert comparison.verdict == "better"


def test_all_rules_are_checked_without_findings() -> None:
    analysis = bundled("slow-reader.pcap.gz")
    whole = {each.code: each for each in compare(analysis, analysis).findings}
    assert whole["TW201"] == FindingChange(
        "TW201", "zero-window-stall", None, 1, 1, 6_095_703_000, 6_095_703_000, 0.0, 0.0, "same"
    )


def shape(volume_bytes: int, direction: str = "a_to_b", duration_ns: int = 10**9, id: int = 0) -> Shape:
    return Shape(id, ("10.0.0.2", 80), volume_bytes, direction, duration_ns)


@all_cases(
    ("old", "new", "expected"),
    [
        (shape(100), shape(10_000), True),
        (shape(100), shape(40_000), True),
        (shape(100), shape(40_001), False),
        (shape(200_000), shape(50_000), True),
        (shape(200_000), shape(49_999), False),
        # A test of fixed duration: sixteen times the data in the same time.
        (shape(200_000), shape(3_200_000), True),
        (shape(200_000), shape(3_200_000, duration_ns=2 * 10**9), True),
        (shape(200_000), shape(3_200_000, duration_ns=2 * 10**9 + 1), False),
        (shape(200_000), shape(3_200_000, "b_to_a"), False),
        # The control connection lasts as long as its data connection.
        (shape(99_999), shape(3_200_000), False),
        (shape(0, duration_ns=0), shape(0, duration_ns=0), True),
        (shape(200_000, duration_ns=0), shape(3_200_000), False),
    ],
)
def test_similar(old: Shape, new: Shape, expected: bool) -> None:
    assert is_similar(old, new) is expected
    assert is_similar(new, old) is expected


def test_partners_have_the_same_server(tmp_path: Path) -> None:
    """Ports 9000 and 8080 of b; client ports are ignored."""
    old = capture(tmp_path / "old", transfer(1001), transfer(1002, start=1.0).setting("port b 8080"))
    elsewhere = Story(now=0.5).setting("port b 8080").setting("port a 2001").handshake()
    elsewhere.burst("a", 10).wait(0.04).ack("b")
    new = capture(tmp_path / "new", elsewhere, transfer(2002, start=1.0))
    assert [str(each.b) for each in new] == ["10.0.0.2:8080", "10.0.0.2:9000"]
    assert pair(old, new)[0] == [Match(0, 1, is_similar=True)]


def test_partners_of_several_are_found_in_order(tmp_path: Path) -> None:
    """Two requests and a download in another order; one more request before, one more download after."""
    old = [
        transfer(1, rounds=1, segments=2),
        transfer(2, start=1.0),
        transfer(3, rounds=1, segments=2, start=2.0),
        transfer(4, rounds=1, segments=2, start=3.0),
    ]
    new = [
        transfer(5),
        transfer(6, rounds=1, segments=2, start=1.0),
        transfer(7, rounds=1, segments=2, start=2.0),
        transfer(8, start=3.0),
    ]
    matches, left_old, left_new = pair(capture(tmp_path / "old", *old), capture(tmp_path / "new", *new))
    assert matches == [Match(0, 1, True), Match(1, 0, True), Match(2, 2, True)]
    assert (left_old, left_new) == ([3], [3])


def test_bulk_transfers_that_nothing_resembles_are_paired_in_order(tmp_path: Path) -> None:
    """116,800 bytes in 320 ms before, 584,000 bytes in 2 s after: five times the data, more than twice as long."""
    found = compared(tmp_path, [transfer()], [transfer(rounds=40, rtt=0.05)])
    assert [each.match for each in found.pairs] == [Match(0, 0, is_similar=False)]


def test_nothing_to_compare(tmp_path: Path) -> None:
    found = compared(tmp_path, [transfer()], [transfer(rounds=1, segments=1)])
    assert (found.verdict, found.pairs, found.unmatched_old, found.unmatched_new) == ("unmatched", (), (0,), (0,))
    assert (found.unmatched_old_count, found.unmatched_new_count, found.goodput_ratio) == (1, 1, None)


def test_many_that_nothing_resembles_hide_no_partner() -> None:
    """More unmatched connections than are compared at once, followed by the partner of the last."""
    from tcpwin.limits.pairs import _pair_group

    strangers = [shape(1_000, id=number) for number in range(3 * LOOK_AHEAD)]
    olds = [shape(10_000_000, id=number) for number in range(3 * LOOK_AHEAD)]
    matches, old_rest, new_rest = _pair_group(olds, [*strangers, shape(10_000_000, id=500)])
    assert [match.new for match in matches] == [500]
    assert len(old_rest) == len(olds) - 1
    assert sorted(each.id for each in new_rest) == list(range(3 * LOOK_AHEAD))


def test_verdict_of_all_is_by_bytes(tmp_path: Path) -> None:
    """One transfer of 1.17 MB is better, three of 117 kB are worse: 77 % of the data against 23 %."""
    ports = range(3)
    old = [transfer(9, rounds=80), *(transfer(port, segments=20, rounds=4, start=5.0 + port) for port in ports)]
    new = [transfer(9, segments=20, rounds=40), *(transfer(port, start=5.0 + port) for port in ports)]
    found = compared(tmp_path, old, new)
    assert found.counts == {"better": 1, "worse": 3, "same": 0, "mixed": 0}
    assert found.verdict == "better"
    assert [each.verdict for each in found.pairs] == ["worse", "worse", "worse", "better"]
    assert found.goodput_ratio == 0.5


@pytest.mark.parametrize(("rounds", "verdict"), [(150, "worse"), (160, "same")])
def test_less_than_a_twentieth_of_the_bytes_is_the_same(tmp_path: Path, rounds: int, verdict: str) -> None:
    """116,800 worse bytes: 5.06 % of 2,190,000 bytes, but 4.76 % of 2,336,000 bytes."""
    same = transfer(9, rounds=rounds)
    found = compared(tmp_path, [same, transfer(1, segments=20, rounds=4, start=9.0)], [same, transfer(1, start=9.0)])
    assert found.counts == {"better": 0, "worse": 1, "same": 1, "mixed": 0}
    assert found.verdict == verdict


def test_the_most_changed_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    old = [transfer(port, start=port / 10) for port in range(1, 5)]
    factors = (1.0, 1.5, 2.0, 0.5)
    new = [
        transfer(port, rtt=0.04 * factor, start=port / 10) for port, factor in zip(range(1, 5), factors, strict=True)
    ]
    found = compared(tmp_path, old, new)
    assert found.counts == {"better": 1, "worse": 2, "same": 1, "mixed": 0}
    assert [(each.match.old, each.verdict) for each in found.pairs] == [(2, "worse"), (1, "worse")]


def test_captures_without_tcp() -> None:
    empty = bundled("only-a-header.pcap")
    assert compare(empty, empty).verdict == "unmatched"
