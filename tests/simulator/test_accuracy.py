"""tcpwin's causes match the simulated senders'.

On any run the counts add up, and at the data's sender only true retransmissions are labelled so. Over a fixed set of
runs with timestamps, captured at the sender, precision and recall of every cause reach 99 %.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from simulator import truth
from simulator.draw import draw
from simulator.judge import RESENT, Judged, Verdict, judge
from simulator.run import Run, simulate
from simulator.segment import Block, Cause
from simulator.strategies import runs
from simulator.tally import RECEIVER, SENDER, Options, Tally, simulate_many, tally
from spread import some_by_day

import tcpwin

LEAST_SHARE = 0.99
# Minimum number of each cause: with fewer, a single mistake is over 1 %.
LEAST_COUNT = 100
RUNS = 1_400
CAUSE_FIELDS = {
    "fast": "fast_retransmissions",
    "recovery": "recovery_retransmissions",
    "lost_retransmission": "lost_retransmissions",
    "rto": "rto_retransmissions",
    "go_back_n": "go_back_n_retransmissions",
    "tail_loss_probe": "tail_loss_probes",
    "spurious": "spurious_retransmissions",
    "syn": "syn_retransmissions",
    "syn_ack": "syn_retransmissions",
    "fin": "fin_retransmissions",
    "fast_open": "fast_open_retransmissions",
    "zero_window": "zero_window_retransmissions",
    "unknown": "unknown_retransmissions",
}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(runs)
def test_what_holds_of_every_run(run: Run) -> None:
    for verdict in judge([(run, "a"), (run, "b")]):
        for side in "ab":
            assert_counts_add_up(verdict, side)
            assert_bytes_are_exact(verdict, side)
        own = [packet for packet in verdict.packets if packet.truth.segment.side == verdict.side]
        assert_sent_again_is_what_was_sent_again(own)
        assert_dsacks_are_counted(verdict)


def direction(verdict: Verdict, side: str) -> tcpwin.Direction:
    return verdict.connection.a_to_b if side == "a" else verdict.connection.b_to_a


def is_called_resent(packet: Judged) -> bool:
    return bool(packet.events & {*RESENT})


def assert_counts_add_up(verdict: Verdict, side: str) -> None:
    """Each retransmission has one kind and one cause, and the direction's numbers are their sums."""
    sent = [packet for packet in verdict.packets if packet.truth.segment.side == side]
    resent = [packet for packet in sent if is_called_resent(packet)]
    assert all(len(packet.events & {*RESENT}) == 1 for packet in resent)
    assert [packet.said for packet in resent] == [packet.said for packet in sent if packet.said in CAUSE_FIELDS]
    fields = direction(verdict, side)
    counted = Counter(CAUSE_FIELDS[packet.said] for packet in resent)
    # A recovery's count includes its lost retransmissions.
    counted["recovery_retransmissions"] += counted["lost_retransmissions"]
    assert fields.retransmissions == len(resent)
    assert {name: getattr(fields, name) for name in CAUSE_FIELDS.values()} == {
        name: counted[name] for name in CAUSE_FIELDS.values()
    }


def assert_bytes_are_exact(verdict: Verdict, side: str) -> None:
    """Resent bytes are those that the capture had before, whatever their order."""
    seen: list[Block] = []
    again = 0
    for packet in verdict.packets:
        segment = packet.truth.segment
        if segment.side == side and segment.length and "capture_duplicate" not in packet.events:
            start, end = segment.seq, segment.seq + segment.length
            touching = [block for block in seen if block[0] <= end and start <= block[1]]
            again += sum(min(end, right) - max(start, left) for left, right in touching)
            seen = [block for block in seen if block not in touching]
            seen.append((min([start, *(left for left, _ in touching)]), max([end, *(right for _, right in touching)])))
    assert direction(verdict, side).resent_bytes == again


def assert_sent_again_is_what_was_sent_again(own: list[Judged]) -> None:
    """At its sender, exactly the true retransmissions are labelled, and nothing is out of order."""
    assert [packet.frame for packet in own if is_called_resent(packet)] == [
        packet.frame for packet in own if packet.truth.cause is not None
    ]
    assert not [packet.frame for packet in own if "out_of_order" in packet.events]


def assert_dsacks_are_counted(verdict: Verdict) -> None:
    for side, other in ("ab", "ba"):
        captured = [one.segment for one in verdict.run.captures[verdict.side] if one.segment.side == other]
        assert direction(verdict, side).dsacks == sum(segment.is_dsack for segment in captured)


@pytest.fixture(scope="module", params=some_by_day([True, False], of=2), ids=lambda sack: "SACK" if sack else "no SACK")
def counted(request: pytest.FixtureRequest) -> Tally:
    """Count runs with timestamps, every other one with wrap-around, captured at the data's sender."""
    half = RUNS // 2
    merged = Tally()
    for wrap in (False, True):
        options = Options(sack=request.param, timestamps=True, wrap=wrap)
        seeds = range(100_000 + wrap * half, 100_000 + (1 + wrap) * half)
        merged.pairs.update(tally(simulate_many(options, seeds), both_ends=False)[SENDER].pairs)
    return merged


@pytest.mark.parametrize("cause", truth.CAUSES)
def test_every_cause_is_found_with_timestamps_at_the_sender(cause: str, counted: Tally) -> None:
    if not counted.true(cause) and cause in (Cause.LOST_RETRANSMISSION, Cause.TAIL_LOSS_PROBE):
        # Without SACK neither exists, so none may be found.
        assert counted.said(cause) == 0
        return
    precision, recall = counted.precision(cause), counted.recall(cause)
    assert counted.true(cause) >= LEAST_COUNT or precision == recall == 1
    assert precision >= LEAST_SHARE
    assert recall >= LEAST_SHARE


def test_new_data_is_never_called_sent_again_or_late_at_the_sender(counted: Tally) -> None:
    assert counted.true(truth.NEW) > 50_000
    assert counted.pairs[truth.NEW, truth.NEW] == counted.true(truth.NEW)


@pytest.mark.parametrize("timestamps", some_by_day([True, False], of=2))
@pytest.mark.parametrize("sack", some_by_day([True, False], of=2))
def test_only_what_was_needless_is_shown_needless(sack: bool, timestamps: bool) -> None:
    """DSACK, Eifel and F-RTO never prove more retransmissions unnecessary than were."""
    simulated = list(simulate_many(Options(sack, timestamps, wrap=False), range(300_000, 300_250)))
    own = [(run, run.settings.sender) for run in simulated if not run.settings.data_link.duplicate]
    proven = 0
    for verdict in judge(own):
        fields = direction(verdict, verdict.side)
        by_proof = (fields.spurious_by_dsack, fields.spurious_by_timestamps, fields.spurious_by_frto)
        assert max(by_proof) <= needless(verdict.run, verdict.side), verdict.run.settings
        proven += sum(by_proof)
    # Without either option, only F-RTO can show that a timeout was spurious, by the second ACK after it.
    assert proven > (5 if sack or timestamps else 0)


def needless(run: Run, side: str) -> int:
    """Count retransmissions of data whose earlier transmission arrived, even if later."""
    arrived: Counter[int | None] = Counter()
    count = 0
    for segment in run.sent:
        if segment.side == side and segment.length + segment.fin:
            count += segment.cause is not None and arrived[segment.ordinal] > 0
            arrived[segment.ordinal] += segment.is_needless is not None
    return count


def test_late_originals_differ_from_retransmissions_at_the_receiver() -> None:
    options = Options(sack=True, timestamps=True, wrap=False)
    found = tally(simulate_many(options, range(200_000, 200_200)))[RECEIVER]
    assert found.true(truth.OUT_OF_ORDER) >= 50
    recall, precision = found.recall(truth.OUT_OF_ORDER), found.precision(truth.OUT_OF_ORDER)
    # The rest: a retransmission that the network also delayed looks like an original.
    assert recall >= 0.95
    assert precision >= 0.95


def test_a_capture_that_misses_packets_says_what_it_can() -> None:
    """Data lost only by the capture was not retransmitted, and is not called so."""
    for seed in range(40):
        given_ = replace(draw(Random(seed), sack=True, timestamps=True, wrap=False), capture_loss=0.02)
        run = simulate(given_)
        (verdict,) = judge([(run, given_.sender)])
        own = [packet for packet in verdict.packets if packet.truth.segment.side == verdict.side]
        assert not [packet.frame for packet in own if is_called_resent(packet) and packet.truth.cause is None]
