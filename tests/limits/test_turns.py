"""Whose turn it was: one exchange has one answer wherever it was captured, and silence is charged to who had to act.

judgement.md 6: the sum of each exchange's think time, work and round trips is the connection's life.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stories.conversation import Conversation, Exchange, interleaved, never_waiting
from stories.story import Story, codes

import tcpwin

PLACES = (0.0, 0.3, 0.5, 0.9, 1.0)
MS = 1_000_000


def at_every_place(folder: Path, exchanges: list[Exchange], rtt_s: float) -> list[tcpwin.Analysis]:
    """Analyse the conversation at each capture point."""
    analyses = []
    for number, place in enumerate(PLACES):
        folder_of_place = folder / str(number)
        folder_of_place.mkdir(exist_ok=True)
        analyses.append(Conversation(exchanges, rtt_s, place).story().analyze(folder_of_place))
    return analyses


@pytest.mark.parametrize(
    ("think_s", "work_s", "rtt_s", "limit", "owner"),
    [
        (0.0003, 0.0012, 0.02, "round_trips", "client_application"),
        (0.001, 0.2, 0.02, "sender_application", "server_application"),
        (0.3, 0.002, 0.02, "requester_application", "client_application"),
        (0.0001, 0.0001, 0.15, "round_trips", "client_application"),
        (0.002, 0.05, 0.0004, "sender_application", "server_application"),
    ],
)
def test_the_answer_is_the_same_everywhere(
    tmp_path: Path, think_s: float, work_s: float, rtt_s: float, limit: str, owner: str
) -> None:
    exchanges = [Exchange(think_s, work_s)] * 40
    for place, analysis in zip(PLACES, at_every_place(tmp_path, exchanges, rtt_s), strict=True):
        connection = analysis.connections[0]
        verdict = connection.verdict
        assert (verdict.limit, verdict.owner) == (limit, owner), place
        assert (connection.turns_state, connection.exchanges) == ("known", 40)
        assert connection.requester_turn_ns == pytest.approx(40 * think_s * 1e9, rel=0.02), place
        assert connection.responder_turn_ns == pytest.approx(40 * work_s * 1e9, rel=0.02), place
        # A round trip to each exchange, and the last answer's ACK.
        assert connection.round_trip_turns_ns == pytest.approx(40 * rtt_s * 1e9, rel=0.05), place


exchanges = st.builds(
    Exchange,
    think_s=st.floats(0.0001, 2.0),
    work_s=st.floats(0.0001, 2.0),
    request_bytes=st.integers(1, 3_000),
    answer_bytes=st.integers(1, 12_000),
)


def one_full_segment(request_bytes: int, answer_bytes: int) -> list[Exchange]:
    """Return exchanges of which one message fills a segment: its ACK is delayed until the answer is sent."""
    return [Exchange(1.0, 1.0, 1, 1), Exchange(2.0, 1.0, request_bytes, answer_bytes), Exchange(1.0, 0.5, 1, 1)]


@example(drawn=one_full_segment(1460, 1), rtt_s=0.0003)
@example(drawn=one_full_segment(1, 1460), rtt_s=0.0003)
@settings(max_examples=5000)
@given(drawn=st.lists(exchanges, min_size=3, max_size=30), rtt_s=st.sampled_from([0.0003, 0.005, 0.03, 0.15, 0.3]))
def test_turns_do_not_depend_on_the_capture_point(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Exchange], rtt_s: float
) -> None:
    analyses = at_every_place(tmp_path_factory.mktemp("turns"), drawn, rtt_s)
    life_ns = analyses[0].connections[0].duration_ns
    truth = {
        "requester_turn_ns": sum(each.think_s for each in drawn) * 1e9,
        "responder_turn_ns": sum(each.work_s for each in drawn) * 1e9,
        "round_trip_turns_ns": len(drawn) * rtt_s * 1e9,
    }
    for analysis in analyses:
        connection = analysis.connections[0]
        for name, true_ns in truth.items():
            assert abs(getattr(connection, name) - true_ns) <= 0.05 * life_ns + rtt_s * 1e9, name
    costs = [analysis.connections[0].verdict.cost_ns for analysis in analyses]
    limits = {(analysis.connections[0].verdict.limit, analysis.connections[0].verdict.owner) for analysis in analyses}
    largest = sorted(truth.values())
    if largest[-1] - largest[-2] > 0.2 * life_ns:
        # Two limits of similar size may change places.
        assert len(limits) == 1
        assert all(abs(one - other) <= 0.1 * life_ns for one, other in pairwise(costs))


@pytest.mark.parametrize("segments", [20, 21])
def test_an_answer_that_still_arrives_is_not_the_clients_thinking(tmp_path: Path, segments: int) -> None:
    """At the server an answer leaves at once, over 2.4 Mbit/s: an ACK of two segments each 10 ms, then a request."""
    story = Story().handshake(rtt=0.02, near="b")
    for _ in range(15):
        story.data("a", 100, flags="PA")
        start = story.next["b"]
        story.acked["b"] = story.next["a"]
        for number in range(segments):
            story.wait(0.00001).data("b", 1460, flags="PA" if number == segments - 1 else "A")
        story.wait(0.02)
        for pair in range(segments // 2):
            story.wait(0.01).ack("a", start + (pair + 1) * 2 * 1460)
        # Linux delays the ACK of a lone last segment, and the next request carries it.
        story.wait(0.005).acked["a"] = story.next["b"]
    connection = story.analyze(tmp_path).connections[0]
    assert connection.exchanges == 15
    # The last 5 ms before each request may be the client's, the 100 ms before are the path's.
    assert connection.requester_turn_ns <= 14 * 6 * MS
    assert connection.verdict.limit != "requester_application"


def test_a_delayed_ack_does_not_hide_the_clients_thinking(tmp_path: Path) -> None:
    """One segment, acknowledged 40 ms later, and the next request after another 60 ms."""
    story = Story().handshake(rtt=0.02, near="b")
    for _ in range(15):
        story.data("a", 100, flags="PA")
        story.acked["b"] = story.next["a"]
        story.wait(0.001).data("b", 900, flags="PA")
        story.wait(0.06).ack("a")
        story.wait(0.06)
    connection = story.analyze(tmp_path).connections[0]
    assert connection.requester_turn_ns == pytest.approx(14 * 100 * MS, rel=0.05)
    assert connection.verdict.limit == "requester_application"


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_one_slow_answer_among_many_is_named(tmp_path: Path, place: float) -> None:
    exchanges = [Exchange(0.001, 3.0 if number == 7 else 0.002) for number in range(20)]
    verdict = Conversation(exchanges, 0.03, place).story().analyze(tmp_path).connections[0].verdict
    assert verdict.limit == "sender_application"
    assert "took 3 s to answer once" in str(verdict)


def test_nobody_asked_for_a_long_time(tmp_path: Path) -> None:
    """A pooled connection: 245 s after the last answer comes the next request."""
    analysis = Conversation([Exchange(), Exchange(think_s=245), Exchange()]).story().analyze(tmp_path)
    connection = analysis.connections[0]
    assert (connection.verdict.limit, connection.verdict.owner, connection.verdict.cost_ns) == ("idle", "nobody", 0)
    assert connection.nothing_asked_ns == pytest.approx(245e9, rel=0.01)
    assert codes(analysis) == []


def test_both_sides_may_send_when_they_like(tmp_path: Path) -> None:
    """Full duplex: each side's data crosses the other's, so nobody's turn can be told."""
    connection = interleaved().analyze(tmp_path).connections[0]
    assert connection.turns_state == "interleaved"
    assert connection.requester_turn_ns == connection.responder_turn_ns == 0
    assert connection.verdict.confidence == "possible"


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_blamed_if_neither_side_waits(tmp_path: Path, seed: int, place: float) -> None:
    """At random times few messages cross on the path, but each that does shows that its sender did not wait."""
    analysis = never_waiting(seed, place).analyze(tmp_path)
    connection = analysis.connections[0]
    assert "TW411" not in codes(analysis)
    assert connection.turns_state in ("interleaved", "overlapping")
    assert connection.verdict.confidence == "possible"


THINKING_S = (0.02, 0.11, 0.05, 0.13, 0.01, 0.08, 0.15, 0.03, 0.09, 0.06)


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_a_server_may_send_on_a_timer(tmp_path: Path, place: float) -> None:
    """It sends every 400 ms, whenever the client's message comes: a client that did not think would gain nothing."""
    ticks = [Exchange(each, 0.38 - each, answer_bytes=9_000) for each in THINKING_S]
    connection = Conversation(ticks, 0.02, place).story().analyze(tmp_path).connections[0]
    assert connection.turns_state == "scheduled"
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner) == ("sender_application", "server_application")
    assert verdict.confidence != "certain"
    assert "at even times" in str(verdict)


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("work_s", [0.001, 0.2])
def test_a_server_that_answers_has_no_schedule(tmp_path: Path, place: float, work_s: float) -> None:
    """Neither with a client that thinks unevenly, nor with one that asks at even times, except once."""
    uneven = [Exchange(each, work_s) for each in THINKING_S]
    even = [Exchange(0.4 - work_s, work_s) for _ in range(12)]
    even[3] = Exchange(0.4 - work_s, work_s + 0.07)
    even[4] = Exchange(0.4 - work_s - 0.07, work_s)
    for exchanges in (uneven, even):
        connection = Conversation(exchanges, 0.02, place).story().analyze(tmp_path).connections[0]
        assert connection.turns_state == "known"


def test_the_band_shows_whose_turn_it_is_at_each_instant(tmp_path: Path) -> None:
    """Captured at the client, half of the path's time lies before the server's work and half after it."""
    analysis = Conversation([Exchange(0.01, 0.3)] * 2, 0.1).story().analyze(tmp_path)
    [view] = analysis.views([0])
    series = view.budget(direction="b_to_a")
    start_ns = analysis.connections[0].start_ns
    band = [
        (name, round(int(series.start_ns[place] - start_ns) / MS), round(int(spent_ns[place]) / MS))
        for place in range(len(series))
        for name, spent_ns in series.spent_ns.items()
        if spent_ns[place]
    ]
    assert band[:6] == [
        ("handshake", 0, 100),
        ("requester", 100, 10),
        ("round_trip", 110, 50),
        ("responder", 160, 300),
        ("round_trip", 460, 50),
        ("requester", 510, 10),
    ]


def test_a_long_answer_over_a_narrow_path_is_not_the_servers_silence(tmp_path: Path) -> None:
    """At the client, 2.9 ms between segments and an ACK of two: every second gap has data in flight."""
    story = Story().handshake(rtt=0.004)
    for _ in range(8):
        story.wait(0.001).data("a", 100, flags="PA")
        story.acked["b"] = story.next["a"]
        story.wait(0.005)
        for number in range(40):
            story.wait(0.0029).data("b", 1460 if number < 39 else 700, flags="PA" if number in (20, 39) else "A")
            if number % 2:
                story.ack("a")
    connection = story.analyze(tmp_path).connections[0]
    assert (connection.exchanges, connection.verdict.limit) == (8, "path_rate")
    assert connection.verdict.share > 0.9
    assert connection.b_to_a.budget_application_ns < 10 * MS


def uploads(depth: int, *, place: float, apart_s: float = 12e-6) -> Story:
    """Chunks that the server acknowledges after 2 ms each, `depth` under way; a buffer joins them, without PSH.

    `apart_s`: time of a segment on the path.
    """
    rtt_s, chunk, segments = 0.03, 14_600, 10
    sent: list[tuple[float, int, str, int]] = []
    heard_s, free_s, line_s = [0.03 + number * 1e-6 for number in range(depth)], 0.0, 0.0
    answers = 0
    for number in range(30):
        now_s = max(heard_s[number], line_s)
        line_s = now_s + segments * apart_s
        if number >= depth:
            answers += 1
        sent += [(now_s + nth * apart_s + place * rtt_s / 2, answers, "a", 1460) for nth in range(segments)]
        free_s = max(free_s, line_s + rtt_s / 2) + 0.002
        sent.append((free_s + (1 - place) * rtt_s / 2, number + 1, "b", 20))
        heard_s.append(free_s + rtt_s / 2 + 0.0001)
    story = Story().handshake(rtt=rtt_s, near="a" if place == 0 else "b")
    start_s = story.now
    for at_s, known, side, size in sorted(sent):
        story.now = start_s + at_s
        story.acked[side] = 1 + known * (20 if side == "a" else chunk)
        story.data(side, size, flags="A" if side == "a" else "PA")
    return story


@pytest.mark.parametrize("place", [0.0, 1.0])
@pytest.mark.parametrize("depth", [2, 4])
def test_chunks_that_a_buffer_joined_wait_for_their_answers(tmp_path: Path, depth: int, place: float) -> None:
    connection = uploads(depth, place=place).analyze(tmp_path).connections[0]
    assert connection.turns_state == "overlapping"
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner, verdict.confidence) == ("round_trips", "client_application", "possible")


@pytest.mark.parametrize("place", [0.0, 1.0])
def test_chunks_that_fill_the_path_wait_for_no_answer(tmp_path: Path, place: float) -> None:
    """Four of 10 ms each, longer than the round trip: the answers arrive in time."""
    connection = uploads(4, place=place, apart_s=0.001).analyze(tmp_path).connections[0]
    assert (connection.turns_state, connection.verdict.limit) == ("overlapping", "path_rate")
