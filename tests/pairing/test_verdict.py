"""The verdict from both captures: the same judgement, and conclusions that only two captures allow."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import all_cases
from pairing.pairs import captures, data_direction
from reference import ROOT
from stories.boxes import outage
from worlds.truths import Truth, read_truths

import tcpwin
from tcpwin.limits import CONFIDENCES, LIMITS, OWNERS, Crossing, Verdict, judge_directions
from tcpwin.pairing import JudgedDirection

WORLDS = sorted((ROOT / "tests" / "worlds" / "captures").glob("*-sender.pcap.gz"))
OVERFLOWS = sorted(Path(__file__).with_name("captures").glob("*-sender.pcap.gz"))
LOSSY = "loss1_cubic_sack1"
RUNS = (LOSSY, "loss1_reorder_cubic_sack1", "oscil_10mbit_300ms_170p2_guard", "slow_reader", "wscale_85ms")


def ids(path: Path) -> str:
    return path.name.removesuffix("-sender.pcap.gz")


def truth_of(path: Path) -> Truth:
    seed, number = map(int, re.findall(r"\d+", path.name)[:2])
    return next(truth for truth in read_truths(seed) if truth.number == number)


def judged(pairing: tcpwin.Pairing) -> JudgedDirection:
    """Return the judged direction with the most payload."""
    data = data_direction(pairing)
    found = pairing.judge(data.connection)
    return found.directions[data.index]


def other_end(path: Path) -> Path:
    return path.with_name(path.name.replace("sender", "receiver"))


@all_cases("path", WORLDS, ids=ids)
def test_a_certain_verdict_of_one_capture_holds_for_both(path: Path) -> None:
    """Also if they are named in the opposite order."""
    truth = truth_of(path).result
    for pairing in (tcpwin.pair(path, other_end(path)), tcpwin.pair(other_end(path), path)):
        assert judged(pairing).verdict.limit in truth.alike


@pytest.mark.parametrize("path", OVERFLOWS, ids=ids)
def test_losses_of_a_full_queue_are_the_paths_rate(path: Path) -> None:
    """Other traffic keeps the queue long: in one capture losses may look random; both show that each met a full
    queue.
    """
    both = judged(tcpwin.pair(path, other_end(path)))
    assert both.alone["a"].limit in ("path_loss", "path_rate")
    assert "path_loss" not in truth_of(path).result.alike
    assert both.verdict.limit in truth_of(path).result.alike
    assert "queue" in both.verdict.reason
    # Nobody can fix the overflow of a fully used path.
    assert both.verdict.lost_ns < 0.1 * both.budget.total_ns


@all_cases("name", RUNS)
def test_a_verdict_by_both_is_one_as_any(name: str) -> None:
    pairing = tcpwin.pair(*captures(name))
    for connection in pairing.connections:
        found = pairing.judge(connection.number)
        assert found is not None
        assert found.verdict in [each.verdict for each in found.directions]
        for each in found.directions:
            is_sound(each.verdict, each)


def is_sound(verdict: Verdict, judged: JudgedDirection) -> None:
    """Check that a verdict contains nothing it must never print."""
    life_ns = judged.budget.total_ns
    assert verdict.limit in LIMITS
    assert verdict.owner in OWNERS
    assert verdict.confidence in CONFIDENCES
    assert 0 <= verdict.share <= 1
    assert 0 <= verdict.cost_low_ns <= verdict.cost_ns <= verdict.cost_high_ns <= life_ns
    assert verdict.lost_ns <= life_ns
    assert sum(judged.budget.packets_ns.values()) == life_ns


def test_loss_is_reported_with_its_count_and_place() -> None:
    verdict = judged(tcpwin.pair(*captures(LOSSY))).verdict
    assert (verdict.limit, verdict.owner) == ("path_loss", "network")
    assert verdict.reason.startswith("59 of 5,586 packets lost between a and b")
    # A remedy already in place is not offered.
    assert "capture at both ends" not in (verdict.fix or "")
    assert "between a and b" in (verdict.fix or "")


def test_packets_that_the_receiver_dropped_are_not_the_paths() -> None:
    """captures/runs: the reader oscillates, and its kernel drops arrived data (tests/pairing/test_resent.py)."""
    verdict = judged(tcpwin.pair(*captures("oscil_10mbit_300ms_170p2_guard"))).verdict
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_memory", "client_host", "client")
    assert "153 of 153 retransmissions" in verdict.reason


def test_packets_dropped_for_their_age_blame_what_reorders() -> None:
    verdict = judged(tcpwin.pair(*captures("loss1_reorder_cubic_sack1"))).verdict
    assert (verdict.limit, verdict.owner) == ("path_loss", "network")
    assert "reorders" in (verdict.fix or "")


def made(**what: int) -> Crossing:
    """Return a modified pairing of the captures of `LOSSY`."""
    counts = {"known": 5586, "lost": 59, "back_known": 2966, "back_lost": 0, "retransmissions": 59, "for_lost": 59}
    counts |= {"for_lost_acks": 0, "needless": 0, "for_refused": 0, **what}
    return Crossing(near="a", far="b", **counts)


def by(crossing: Crossing | None) -> Verdict:
    [connection] = tcpwin.analyze(captures(LOSSY)[0]).connections
    crossings = {} if crossing is None else {"b_to_a": crossing}
    return judge_directions(connection, connection.findings, crossings)["b_to_a"]


def test_needless_recoveries_are_not_loss() -> None:
    verdict, alone = by(made(lost=0, for_lost=0, needless=59)), by(None)
    assert alone.limit == "path_loss"
    assert (verdict.limit, verdict.owner) == ("congestion_control", "network")
    assert "no packet was lost" in verdict.reason
    assert verdict.is_problem
    assert verdict.lost_ns == alone.lost_ns
    assert verdict.code is None


def test_lost_acks_are_lost_on_the_way_back() -> None:
    verdict = by(made(lost=0, for_lost=0, for_lost_acks=59, back_lost=700))
    assert (verdict.limit, verdict.owner) == ("path_loss", "network")
    assert "between b and a" in (verdict.fix or "")
    assert "700 of 2,966 packets" in verdict.reason


def test_drops_beyond_a_point_in_between_are_not_the_receivers() -> None:
    crossing = made(lost=0, for_lost=0, for_refused=59)
    refused, beyond = by(crossing), by(replace(crossing, is_at_receiver=False))
    assert (refused.limit, refused.owner) == ("receiver_memory", "client_host")
    assert (beyond.limit, beyond.owner) == ("path_loss", "network")


def test_what_the_receiver_refused_for_a_time_is_no_outage(tmp_path: Path) -> None:
    """The sender's packets show an outage; the receiver's capture shows that everything arrived, or that it did not."""
    near = outage(near="a", sender="a").write(tmp_path, "near")
    [alone] = tcpwin.analyze(near).connections
    assert alone.verdict.limit == "path_outage"
    lost = made(known=30, lost=7, retransmissions=7, for_lost=7)
    for crossing, limit in (
        (replace(lost, lost=0, for_lost=0, for_refused=7), "receiver_memory"),
        (lost, "path_outage"),
    ):
        verdict = judge_directions(alone, alone.findings, {"a_to_b": crossing})["a_to_b"]
        assert verdict.limit == limit
        assert verdict.owner == ("server_host" if limit == "receiver_memory" else "network")
        assert ("TcpExtTCPRcvQDrop" in (verdict.fix or "")) == (limit == "receiver_memory")


def test_a_queue_on_the_way_back_makes_the_paths_rate_doubtful() -> None:
    [connection] = tcpwin.analyze(captures("mid_connection_noSYN")[0]).connections
    crossing = replace(made(lost=0, for_lost=0, retransmissions=0), queue_ns=0, back_queue_ns=40_000_000)
    crossing = replace(crossing, round_trip_ns=50_000_000)
    for given, confidence in ((crossing, "possible"), (replace(crossing, back_queue_ns=0), "likely")):
        verdicts = judge_directions(connection, connection.findings, dict.fromkeys(("a_to_b", "b_to_a"), given))
        [verdict] = [each for each in verdicts.values() if each.limit == "path_rate"]
        assert verdict.confidence == confidence


def test_flight_is_the_senders_and_windows_are_the_receivers() -> None:
    """captures/runs: the receiver's capture shows each window as it left, the sender's as it arrived."""
    both = judged(tcpwin.pair(*captures("slow_reader")))
    assert (both.sender_view.capture, both.receiver_view.capture) == ("a", "b")
    [sender] = tcpwin.analyze(captures("slow_reader")[0]).connections
    [receiver] = tcpwin.analyze(captures("slow_reader")[1]).connections
    assert both.sender_view.flight_max_bytes == sender.b_to_a.flight_max_bytes
    assert both.receiver_view.window_max_bytes == receiver.b_to_a.receive_window_max_bytes
    assert both.receiver_view.flight_max_bytes != both.sender_view.flight_max_bytes


def test_one_capture_that_cannot_tell_is_not_asked(tmp_path: Path) -> None:
    """The sender's capture lacks the data's direction, so the receiver's judges."""
    from pairing.packets import read, write

    one_way = [packet for packet in read(captures(LOSSY)[0]) if packet.ports[0] != 5201]
    both = judged(tcpwin.pair(write(tmp_path / "a.pcap", one_way), captures(LOSSY)[1]))
    assert both.judged_in == "b"
    assert both.verdict.limit != "capture"
