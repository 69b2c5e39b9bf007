"""Return tcpwin's events of the data's sender by frame, to compare with the segments on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from lab.runs import Run

# Exactly one of these names what kind of resent data a segment is.
RESENT = ("retransmission", "fast_retransmission", "rto_retransmission", "tail_loss_probe", "spurious_retransmission")


@cache
def names_by_frame(run: Run) -> dict[int, frozenset[str]]:
    """Return what tcpwin calls each segment with payload from the data's sender."""
    columns = run.columns
    rows = run.from_sender & (columns["length"] > 0)
    names = (frozenset(filter(None, str(events).split("|"))) for events in columns["events"][rows])
    return dict(zip((int(frame) for frame in columns["frame"][rows]), names, strict=True))


def frames_of(run: Run, *events: str) -> set[int]:
    """Return the frames of the data's sender that have any of these events."""
    return {frame for frame, names in names_by_frame(run).items() if names & set(events)}


def frames_resent(run: Run) -> set[int]:
    """Return the frames with bytes sent again, whatever kind."""
    return frames_of(run, *RESENT)


def times_of(run: Run, frames: Iterable[int]) -> list[int]:
    """Return when these frames were captured."""
    wanted = set(frames)
    columns = run.columns
    rows = zip(columns["frame"], columns["time_ns"], strict=True)
    return [int(time_ns) for frame, time_ns in rows if int(frame) in wanted]
