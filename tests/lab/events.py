"""tcpwin's events of the data's sender by frame, to compare with the segments on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from lab.runs import Run

# Exactly one of these names the kind of retransmission.
RESENT = ("retransmission", "fast_retransmission", "rto_retransmission", "tail_loss_probe", "spurious_retransmission")


@cache
def names_by_frame(run: Run) -> dict[int, frozenset[str]]:
    """Return tcpwin's events of each segment with payload from the data's sender."""
    columns = run.columns
    rows = run.from_sender & (columns["length"] > 0)
    names = (frozenset(filter(None, str(events).split("|"))) for events in columns["events"][rows])
    return dict(zip((int(frame) for frame in columns["frame"][rows]), names, strict=True))


def frames_of(run: Run, *events: str) -> set[int]:
    """Return the frames of the data's sender that have any of these events."""
    return {frame for frame, names in names_by_frame(run).items() if names & set(events)}


def frames_resent(run: Run) -> set[int]:
    """Return the frames with any kind of retransmission."""
    return frames_of(run, *RESENT)


def times_of(run: Run, frames: Iterable[int]) -> list[int]:
    """Return the capture times of these frames."""
    wanted = set(frames)
    columns = run.columns
    rows = zip(columns["frame"], columns["time_ns"], strict=True)
    return [int(time_ns) for frame, time_ns in rows if int(frame) in wanted]
