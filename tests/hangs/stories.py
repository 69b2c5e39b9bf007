"""Connections that hang, as stories captured at the sender a: what it waits for at the end, and since when.

Timers are Linux's: the first after 240 ms (a round trip of 40 ms and 200 ms), each twice the previous.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stories.story import Story

RTO = 0.24


def transfer(segments: int = 20) -> Story:
    """b has received everything that a sent so far."""
    story = Story().handshake()
    story.burst("a", segments, spacing=0).wait(0.04)
    story.ack("b")
    return story.wait(0.01)


def timers(story: Story, count: int, ask: Callable[[], object], answer: Callable[[], object] | None = None) -> Story:
    """Let a ask `count` times, doubling the interval each time, and b answer 40 ms later."""
    interval = RTO
    for _ in range(count):
        story.wait(interval)
        ask()
        if answer is not None:
            story.wait(0.04)
            answer()
            story.wait(-0.04)
        interval *= 2
    return story


def closed(probes: int, *, answered: bool = True) -> Story:
    """b closes its window during 20 segments, and a probes it."""
    story = Story().handshake()
    story.burst("a", 20, spacing=0).wait(0.04)
    story.ack("b", window=0)
    last = story.next["a"]
    return timers(
        story, probes, lambda: story.step("a", "A", seq=last - 1), (lambda: story.step("b", "A")) if answered else None
    )


def unanswered(count: int, *, segments: int = 3) -> Story:
    """a sends data, and its first segment again at each timeout."""
    story = transfer()
    first = story.next["a"]
    story.burst("a", segments, spacing=0)
    return timers(story, count, lambda: story.step("a", "A", "len 1460", seq=first))


def keep_alives(count: int, *, answered: int = 0) -> Story:
    """a sends a keep-alive every ten seconds; b answers the first ones."""
    story = transfer()
    last = story.next["a"]
    for number in range(count):
        story.wait(10)
        story.step("a", "A", seq=last - 1)
        if number < answered:
            story.wait(0.04)
            story.step("b", "A")
    return story


def tail_probe() -> Story:
    """a resends its last segment as a tail loss probe, and nothing more is captured."""
    story = transfer()
    story.burst("a", 3, spacing=0)
    story.wait(0.082)
    story.step("a", "A", "len 1460", seq=story.next["a"] - 1460)
    return story


def half_closed_by_receiver() -> Story:
    """b has closed its direction; what a sends is not acknowledged."""
    story = transfer()
    story.step("b", "FA")
    story.next["b"] += 1
    story.wait(0.001)
    story.ack("a")
    first = story.next["a"]
    story.burst("a", 3, spacing=0)
    return timers(story, 5, lambda: story.step("a", "A", "len 1460", seq=first))


def half_closed_by_sender() -> Story:
    """a closes after its last data, none of which is acknowledged."""
    story = transfer()
    first = story.next["a"]
    story.burst("a", 2, spacing=0)
    story.data("a", flags="FA")
    return timers(story, 5, lambda: story.step("a", "A", "len 1460", seq=first))


def reset(story: Story, side: str, wait: float = 0.1) -> Story:
    story.wait(wait)
    story.step(side, "RA" if side == "a" else "R")
    return story


@dataclass(frozen=True, slots=True)
class Case:
    """A story, and what is true of it.

    Attributes:
        kind: what a waits for, as `stall_at_end` names it.
        since: of which frame's time the stall begins.
        goes_on_s: for how long the capture goes on with other packets.
        rule: that finds it.
        blind: a capture that begins with the stall can tell neither data nor window.
    """

    story: Callable[[], Story]
    kind: str
    since: int
    rule: str
    goes_on_s: float = 0.0
    blind: bool = False


# Frames: 1 to 3 the handshake, 4 to 23 the first data, 24 its ACK.
CASES = {
    "closed window": Case(lambda: closed(6), "zero_window", 24, "TW203"),
    "closed window, capture continues": Case(lambda: closed(2), "zero_window", 24, "TW203", 2.0),
    "closed window, reset by the sender": Case(lambda: reset(closed(5), "a"), "zero_window", 24, "TW203"),
    "closed window, reset by the receiver": Case(lambda: reset(closed(5), "b"), "zero_window", 24, "TW203"),
    "closed window, then silence": Case(lambda: closed(6, answered=False), "peer_silent", 25, "TW506", blind=True),
    "silent peer": Case(lambda: unanswered(6), "peer_silent", 25, "TW506"),
    "silent peer, one segment": Case(lambda: unanswered(6, segments=1), "peer_silent", 25, "TW506"),
    "silent peer, reset by the sender": Case(lambda: reset(unanswered(5), "a"), "peer_silent", 25, "TW506"),
    "silent peer, reset by the receiver": Case(lambda: reset(unanswered(5), "b"), "peer_silent", 25, "TW506"),
    "write, nothing else": Case(lambda: unanswered(0), "unacknowledged", 25, "TW506", 2.0, blind=True),
    "write, sent again once": Case(lambda: unanswered(1), "unacknowledged", 25, "TW506", 0.4, blind=True),
    "tail loss probe": Case(tail_probe, "unacknowledged", 25, "TW506", 2.0, blind=True),
    "keep-alives": Case(lambda: keep_alives(5), "peer_silent", 25, "TW506", blind=True),
    "keep-alives, answered at first": Case(lambda: keep_alives(8, answered=3), "peer_silent", 31, "TW506", blind=True),
    "half-closed by the receiver": Case(half_closed_by_receiver, "peer_silent", 27, "TW506"),
    "half-closed by the sender": Case(half_closed_by_sender, "peer_silent", 25, "TW506"),
}

FREE = {
    "all acknowledged": transfer,
    "keep-alives answered": lambda: keep_alives(5, answered=5),
    "data of a millisecond ago": lambda: transfer().burst("a", 3, spacing=0.001),
    "data of a millisecond ago, reset": lambda: reset(transfer().burst("a", 3, spacing=0.001), "b", 0.001),
    "window closed a moment ago": lambda: closed(0).wait(0.1),
    "closed by both sides": lambda: transfer().close(),
}
"""Stories without a stall at the end."""
