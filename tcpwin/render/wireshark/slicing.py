"""Packets of a capture as a pcapng file with a comment on each packet that has an event.

In: an analysis, and a choice of its packets. Out: a file for Wireshark, and its counts. The engine copies the packets
unchanged from the source of the analysis.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tcpwin import _engine
from tcpwin.analysis import FIRST_NS, LAST_NS
from tcpwin.errors import ArgumentError, OutputError, TcpwinError
from tcpwin.figures import CAUSE_WORDS, event_words
from tcpwin.limits import Analysis, Finding, Slice, role_of
from tcpwin.output import open_whole
from tcpwin.render.view.verdict import view_verdict
from tcpwin.units import name_text, short_name

AROUND = 20
"""Number of segments before and after each frame that proves a finding."""
QUIET = (
    "duplicate_ack",
    "window_update",
    "partial_ack",
    "delayed_ack",
    "congestion_experienced",
    "congestion_echo",
)
"""Frequent events, which are mentioned only together with others."""


@dataclass(slots=True)
class _Chosen:
    """The chosen packets, in the form that the engine accepts."""

    connections: set[int] | None = None
    parts: list[int] = field(default_factory=list)
    frames: list[int] | None = None
    start_ns: int = FIRST_NS
    end_ns: int = LAST_NS
    headers_only: bool = False


class _Comments:
    """The comments, in the form that the engine accepts."""

    causes = tuple(CAUSE_WORDS[name] for name in _engine.CAUSES)
    events = tuple(map(event_words, _engine.EVENT_NAMES))
    quiet = QUIET
    stalls = tuple(name.replace("_", " ") for name in _engine.STALL_CAUSES)

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        marks: list[tuple[int, int]] = []
        self.texts: list[str] = []
        for finding in analysis.findings:
            if finding.evidence.frames:
                place = len(self.texts)
                self.texts.append(
                    f"tcpwin: {finding.code} {finding.name} ({finding.severity}): {name_text(finding.text)}"
                )
                marks += [(frame, place) for frame in set(finding.evidence.frames)]
        self.marks = sorted(marks)

    def verdict(self, id: int) -> str:
        """Return the limit of a connection, and the fix."""
        connection = self._analysis.connections[id]
        words = view_verdict(connection.verdict)
        a, b = (f"{role_of(connection, side)} {getattr(connection, side)}" for side in ("a", "b"))
        parts = [f"tcpwin: connection {id}, {a}, {b}: {words.answer}"]
        parts += [f"{label}: {text}" for label, text in words.advice if text != words.evidence]
        if connection.verdict.code and connection.verdict.frames:
            parts.append(f'Evidence: frame.comment contains "{connection.verdict.code}"')
        return name_text(" ".join(part if part.endswith(".") else f"{part}." for part in parts))


def slice_packets(
    analysis: Analysis,
    out: str | os.PathLike[str] | IO[bytes],
    *,
    connections: Iterable[int] | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    findings: Iterable[Finding] | None = None,
    around: int = AROUND,
    headers_only: bool = False,
    comments: bool = True,
    progress: Callable[[int], object] | None = None,
) -> Slice:
    """Write some packets of a capture to a pcapng file.

    Args:
        out: a path, or a file to write to.
        connections: connections whose packets are wanted; by default all packets, TCP or not.
        start_ns, end_ns: only packets of this span, both ends inclusive, nanoseconds since the epoch. The handshakes of
            `connections` are included, because they contain the window scales.
        findings: only the frames that prove these findings, and the packets around them.
        around: number of segments of the connection before and after each of these frames.
        headers_only: omit the payload.
        comments: add comments on the events of each packet.
        progress: called periodically with the number of bytes read.

    Raises:
        IndexError: unknown connection.
        ArgumentError: findings together with a span, or a span that ends before it begins.
        OutputError: no packet was chosen, or the file cannot be written.
        SourceError: the source changed, or could be read only once.
    """
    chosen = _Chosen(
        None if connections is None else {analysis.connections[id].id for id in connections}, headers_only=headers_only
    )
    chosen.start_ns = FIRST_NS if start_ns is None else start_ns
    chosen.end_ns = LAST_NS if end_ns is None else end_ns
    if chosen.end_ns < chosen.start_ns:
        raise ArgumentError(f"the span ends at {chosen.end_ns} ns, before it begins at {chosen.start_ns} ns")
    if findings is not None:
        if start_ns is not None or end_ns is not None:
            raise ArgumentError("findings and a time span cannot be combined: give one or the other")
        _choose_evidence(analysis, chosen, list(findings), around)
    if chosen.connections is not None and analysis.capture.fragments_pending:
        chosen.parts = _engine.frames_of_parts(
            analysis._engine, analysis._source.open(), chosen.connections, name=analysis.name
        )
        if chosen.frames is not None:
            # Only the fragments of datagrams that end among the frames are needed, but it is not known here which these
            # are.
            within = range(chosen.frames[0], chosen.frames[-1] + 1) if chosen.frames else range(0)
            chosen.frames = sorted({*chosen.frames, *(frame for frame in chosen.parts if frame in within)})
    about = f"Packets of {name_text(short_name(analysis.name))}, by tcpwin"
    return _write(analysis, out, chosen, comments, about, progress)


def annotate(
    analysis: Analysis,
    out: str | os.PathLike[str] | IO[bytes],
    *,
    progress: Callable[[int], object] | None = None,
) -> Slice:
    """Write all packets of a capture, and its file's other contents, to a pcapng file with comments.

    Raises:
        OutputError: it cannot be written.
        SourceError: the source changed, or could be read only once.
    """
    about = f"What tcpwin found in {name_text(short_name(analysis.name))} is in the packets' comments"
    return _write(analysis, out, _Chosen(), True, about, progress, everything=True)


def _choose_evidence(analysis: Analysis, chosen: _Chosen, findings: Sequence[Finding], around: int) -> None:
    """Choose the frames that prove findings, with their surroundings; by frame number for findings without a
    connection.
    """
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    frames: set[int] = set()
    for finding in findings:
        if finding.connection is not None:
            wanted[finding.connection] += finding.evidence.frames
        else:
            for frame in finding.evidence.frames:
                frames |= set(range(max(frame - around, 1), frame + around + 1))
    if wanted:
        near, is_same = _engine.frames_around(
            analysis._engine,
            analysis._source.open(),
            dict(wanted),
            around,
            name=analysis.name,
            shifts=analysis._shifts,
            index=analysis._index,
        )
        _check_same(analysis, is_same)
        frames |= set(near)
    if not frames:
        raise OutputError("these findings have no frames: they are based on the connection's totals")
    chosen.frames = sorted(frames)
    chosen.connections = None if any(each.connection is None for each in findings) else set(wanted)


def _write(
    analysis: Analysis,
    out: str | os.PathLike[str] | IO[bytes],
    chosen: _Chosen,
    comments: bool,
    about: str,
    progress: Callable[[int], object] | None,
    *,
    everything: bool = False,
) -> Slice:
    from tcpwin.version import __version__

    texts = _Comments(analysis) if comments else None
    # Two threads may read it at the same time.
    sources = (analysis._source.open(), analysis._source.open())

    def copy(file: IO[bytes]) -> Slice:
        *counts, is_same = _engine.copy_packets(
            analysis._engine,
            sources,
            file,
            chosen,
            texts,
            name=analysis.name,
            everything=everything,
            about=(f"tcpwin {__version__}", about),
            shifts=analysis._shifts,
            progress=progress,
        )
        _check_same(analysis, is_same)
        if not everything and not counts[0]:
            raise OutputError("no packet of the capture was chosen: nothing was written")
        return Slice(*counts)

    if isinstance(out, (str, os.PathLike)):
        with open_whole(Path(out), is_binary=True) as file:
            return copy(file)
    return copy(out)


def _check_same(analysis: Analysis, is_same: bool) -> None:
    if not is_same:
        raise TcpwinError(f"{analysis.name} changed since it was analysed; analyse it again")
