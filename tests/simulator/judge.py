"""Compare tcpwin's results for simulated captures with the truth, packet by packet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from simulator import truth
from simulator.capture import write
from simulator.run import Run
from simulator.truth import Truth

import tcpwin

RESENT = ("retransmission", "fast_retransmission", "rto_retransmission", "tail_loss_probe", "spurious_retransmission")


@dataclass(frozen=True, slots=True)
class Judged:
    """One captured packet with both results.

    Attributes:
        frame: within the run's capture, from 1.
        said: tcpwin's label, in terms of truth.Truth.
        events: tcpwin's event names.
    """

    frame: int
    truth: Truth
    said: str
    events: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One run from one side."""

    run: Run
    side: str
    packets: list[Judged]
    connection: tcpwin.Connection

    @property
    def disagreements(self) -> list[Judged]:
        return [one for one in self.packets if not agree(one.truth, one.said)]


def judge(runs: Sequence[tuple[Run, str]]) -> Iterator[Verdict]:
    """Let tcpwin read the captures of many runs as one file, then yield each with its truth."""
    runs = [(run, side) for run, side in runs if run.captures[side]]
    file = io.BytesIO()
    write(file, runs)
    file.seek(0)
    analysis = tcpwin.analyze(file)
    if len(analysis) != len(runs):
        raise AssertionError(f"{len(runs)} connections written, {len(analysis)} read")
    analysis.follow(range(len(runs)))
    names = _row_events(analysis)
    first = 1
    for (run, side), connection in zip(runs, analysis, strict=True):
        causes = {event.frame: event.cause for event in connection.events if event.cause is not None}
        packets = []
        for frame, true in enumerate(truth.truths(run, side), first):
            events = frozenset(names[frame - 1].split("|")) - {""}
            packets.append(Judged(frame - first + 1, true, _said(events, causes.get(frame), true), events))
        first += len(packets)
        yield Verdict(run, side, packets, connection)


def agree(true: Truth, said: str) -> bool:
    """A packet duplicated by the network is not a retransmission: no cause is right, and its order does not matter."""
    if true.label == truth.NETWORK_DUPLICATE:
        return said not in truth.CAUSES
    return true.label == said


def _said(events: frozenset[str], cause: str | None, true: Truth) -> str:
    if cause is not None:
        return cause
    if "out_of_order" in events:
        return truth.OUT_OF_ORDER
    return truth.PURE_ACK if true.segment.is_pure_ack else truth.NEW


def _row_events(analysis: tcpwin.Analysis) -> list[str]:
    table = analysis.segments()
    frames = np.asarray(table["frame"])
    if not np.array_equal(frames, np.arange(1, len(frames) + 1)):
        raise AssertionError("a packet was not read as a segment")
    return [str(events) for events in table["events"]]
