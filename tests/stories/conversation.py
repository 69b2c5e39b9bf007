"""Conversations as a capture point anywhere on the path sees them: one exchange, the same truth at every point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from stories.story import Story

DELAYED_ACK_S = 0.04
"""Linux's TCP_DELACK_MIN."""
MSS = 1460
APART_S = 12e-6
"""Between two segments of one burst: a gigabit."""


@dataclass(frozen=True)
class Exchange:
    """A request and its answer: how long the client thinks before it, the server works on it, and their bytes."""

    think_s: float = 0.001
    work_s: float = 0.001
    request_bytes: int = 200
    answer_bytes: int = 900


@dataclass
class Conversation:
    """Exchanges over a path of one delay, captured at `place`: 0 is the client, 1 the server.

    The answers are short enough for the initial window, and nothing is lost.
    """

    exchanges: Sequence[Exchange]
    rtt_s: float = 0.02
    place: float = 0.0
    _sent: list[tuple[float, int, str, str, int, int, int]] = field(default_factory=list)

    def story(self) -> Story:
        """Return what the capture point sees."""
        half_s, next_, acked = self.rtt_s / 2, {"a": 1, "b": 1}, {"a": 1, "b": 1}
        self._sent = []
        self._send(0.0, "a", "S", 0, 0, 0)
        self._send(half_s, "b", "SA", 0, 1, 0)
        self._send(self.rtt_s, "a", "A", 1, 1, 0)
        now = self.rtt_s
        for each in self.exchanges:
            for side, wait_s, length in (
                ("a", each.think_s, each.request_bytes),
                ("b", each.work_s, each.answer_bytes),
            ):
                other = "b" if side == "a" else "a"
                if wait_s > DELAYED_ACK_S and next_[other] > acked[side]:
                    self._send(now + DELAYED_ACK_S, side, "A", next_[side], next_[other], 0)
                now += wait_s
                acked[side] = next_[other]
                sizes = [MSS] * ((length - 1) // MSS) + [(length - 1) % MSS + 1]
                for place, size in enumerate(sizes):
                    flags = "PA" if place == len(sizes) - 1 else "A"
                    self._send(now + place * APART_S, side, flags, next_[side], acked[side], size)
                    next_[side] += size
                now += (len(sizes) - 1) * APART_S + half_s
        self._send(now + DELAYED_ACK_S, "a", "A", next_["a"], next_["b"], 0)
        story = Story()
        for at_s, _, side, flags, seq, ack, size in sorted(self._sent):
            story.now = at_s
            options = "<mss 1460,sackOK,ws 7>" if "S" in flags else f"len {size}" if size else ""
            story.window = {"a": 64_240, "b": 65_160} if "S" in flags else {"a": 502, "b": 509}
            story.step(side, flags, options, seq=seq, ack=ack)
        return story

    def _send(self, at_s: float, side: str, flags: str, seq: int, ack: int, size: int) -> None:
        """Note a segment that leaves its side at a time, when it passes the capture point."""
        away = self.place if side == "a" else 1 - self.place
        self._sent.append((at_s + away * self.rtt_s / 2, len(self._sent), side, flags, seq, ack, size))


def interleaved() -> Story:
    """Return a full-duplex connection: each side's data crosses the other's."""
    story = Story().handshake(near="a")
    for _ in range(40):
        story.data("a", 300, flags="PA")
        story.wait(0.002).data("b", 300, flags="PA")
        story.wait(0.002)
        story.acked = {"a": max(story.next["b"] - 300, 1), "b": max(story.next["a"] - 300, 1)}
    return story


def never_waiting(seed: int, place: float, *, messages: int = 60, mean_s: float = 0.1, rtt_s: float = 0.03) -> Story:
    """Return a connection on which both sides send at random times, whatever they receive; `place` as above."""
    drawn, half_s = Random(seed), rtt_s / 2
    story = Conversation([], rtt_s, place).story()
    sent: list[tuple[float, str]] = []
    for side in ("a", "b"):
        now = rtt_s + DELAYED_ACK_S
        for _ in range(messages):
            now += drawn.expovariate(1 / mean_s)
            sent.append((now, side))
    next_ = {"a": 1, "b": 1}
    arrived: list[tuple[float, str, int]] = []
    lines: list[tuple[float, int, str, int, int]] = []
    for now, side in sorted(sent):
        other = "b" if side == "a" else "a"
        heard = max((end for at_s, to, end in arrived if to == side and at_s <= now), default=1)
        away = place if side == "a" else 1 - place
        lines.append((now + away * half_s, len(lines), side, next_[side], heard))
        next_[side] += 100
        arrived.append((now + half_s, other, next_[side]))
    for at_s, _, side, seq, ack in sorted(lines):
        story.now = at_s
        story.step(side, "PA", "len 100", seq=seq, ack=ack)
    return story
