"""Read a capture once and join it with host data: `tcpwin.analyze`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from tcpwin import _engine
from tcpwin.analysis import Shifts
from tcpwin.errors import SnapshotError
from tcpwin.hosts import open_capture, opened
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.question import Question, question_of
from tcpwin.sources import Moment, Packets, SelectedSource, Selection, Source, resolve

if TYPE_CHECKING:
    # Not needed without snapshots, and importing numpy costs more than reading a million packets.
    from tcpwin.hosts import Bundle, Snapshots


def analyze(
    source: Packets | Source | Bundle,
    *,
    snapshots: Iterable[Snapshots] = (),
    capture: str | None = None,
    filter: str | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    clock_offset_ns: int | None = None,
    window_scales: Mapping[str, int] | None = None,
    follow: Iterable[int] | None = None,
    events: bool = False,
    buckets: int = 1024,
    rows: int = 0,
    index: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Analysis:
    """Read a capture once and measure every connection in it; join it with snapshots, if any.

    Args:
        source: a path or an address (https, http; s3, gs and az with obstore), several of them (read in time order), an
            open binary file, a file's bytes, a dpkt reader, packets of scapy or pyshark, scapy's `AsyncSniffer` once it
            has stopped, or pairs of seconds since the epoch and bytes (Ethernet frames or IP packets); or a bundle, or
            the path of one (a folder, .zip or .tar.gz): its capture with its snapshots.
        snapshots: output of `ss`, `nstat`, `sockstat`, `sysctl` and so on, recognised by content; bundles; or pairs of
            a host's name and a file.
        capture: the capture to use if a bundle has several.
        filter: select packets, in libpcap's language: ``host 10.0.0.1 and port 443``. Frames keep their numbers. It
            applies to the packets' bytes: only the first IP fragment has ports.
        start: ignore earlier packets: seconds since the first packet, text such as ``250ms``, ``10:05:30`` or
            ``2026-11-25T10:05:30Z``, or a datetime. A connection with earlier SYNs is measured like one that began
            before the capture.
        end: ignore packets from this time on; same forms as `start`.
        clock_offset_ns: the capture's clock minus the hosts', if known; otherwise it is estimated.
        window_scales: known shifts by address, such as ``{"10.0.0.1": 7}``, for hosts whose SYNs the capture lacks. A
            captured handshake is never overridden.
        follow: numbers of connections whose series and events are kept in this first pass; others are read on demand.
        events: keep events and stalls of all connections in this pass, if none are followed, at a few hundred bytes
            each; useful if rules will be applied.
        buckets: maximum number of buckets per series.
        rows: maximum rows of a whole connection's view without reading the source again.
        index: a file that locates each connection's packets, eight bytes per packet. This pass writes it if it is
            missing or does not match the capture; details are then read without the rest of the capture. Only a single
            uncompressed file can have one; it is ignored for others.
        threads: threads that track connections in parallel; by default the available cores, if that helps. Results are
            identical. With `follow`, `events` or `index` only one is used.
        progress: called periodically with the bytes read so far.

    Raises:
        CaptureError: nothing can be read.
        FilterError: libpcap does not understand the filter.
        SnapshotError: nothing in a snapshot file can be read.
        SourceError: the source has no packets or, with snapshots or window scales, cannot be read again; or a captured
            handshake contradicts a given window scale.
        ArgumentError: a span ends before it begins, a time is invalid, a window scale is not between 0 and 14 or not
            for an address, or `threads` is less than one.
    """
    wanted = list(snapshots)
    chosen = None if follow is None else set(follow)
    given = list(wanted)
    options: dict[str, Any] = {
        "capture": capture,
        "filter": filter,
        "start": start,
        "end": end,
        "clock_offset_ns": clock_offset_ns,
        "window_scales": window_scales,
        "events": events,
        "buckets": buckets,
        "rows": rows,
    }
    analysis = _analyze(source, wanted, chosen, progress=progress, index=index, threads=threads, **options)
    # Repeated on unpickling; details kept only by this pass are then read on demand.
    analysis._question = question_of(source, given, options)
    return analysis


def analysis_of(given: Packets | Source | Bundle | Analysis) -> Analysis:
    """Return an analysis as it is, and analyse anything else."""
    return given if isinstance(given, Analysis) else analyze(given, events=True)


def analyze_again(question: Question) -> Analysis:
    """Repeat an analysis from the same files or bytes, for unpickling.

    Raises:
        SourceError: a file is missing or its size has changed.
        TcpwinError: see `analyze`.
    """
    question.check()
    return analyze(question.source, snapshots=question.snapshots, **question.options)


def _analyze(
    source: Packets | Source | Bundle,
    wanted: list[Any],
    chosen: set[int] | None,
    *,
    capture: str | None,
    filter: str | None,
    start: Moment | None,
    end: Moment | None,
    clock_offset_ns: int | None,
    window_scales: Mapping[str, int] | None,
    events: bool,
    buckets: int,
    rows: int,
    index: str | os.PathLike[str] | None,
    threads: int | None,
    progress: Callable[[int], object] | None,
) -> Analysis:
    events = events and chosen is None
    with opened(source) as bundle:
        if bundle is not None:
            wanted.append(bundle)
        elif capture is not None:
            raise SnapshotError("is not a bundle, so --capture cannot choose from it", str(source))
        packets = cast("Packets | Source", source) if bundle is None else open_capture(bundle, capture)
        selection = Selection(filter, start, end)
        if selection:
            packets = SelectedSource(resolve(packets), selection)
        analysis = Analysis.measure(
            packets,
            follow=chosen,
            events=events,
            buckets=buckets,
            rows=rows,
            index=index,
            threads=threads,
            progress=progress,
        )
        if not wanted and not window_scales:
            return analysis
        shifts: Shifts = {}
        if wanted:
            from tcpwin.hosts import Joined

            joined = analysis._joined = Joined(analysis)
            shifts = joined.take(wanted, clock_offset_ns)
            analysis.notes = joined.notes
        if window_scales:
            from tcpwin.hosts import given_shifts, override_shifts

            by_hand, notes = given_shifts(analysis, window_scales)
            shifts, differing = override_shifts(analysis, shifts, by_hand)
            analysis.notes = (*analysis.notes, *notes, *differing)
        if not shifts:
            return analysis
        engine = _engine.analyze(
            analysis._source.open(),
            name=analysis.name,
            follow="events" if events else chosen,
            buckets=buckets,
            rows=rows,
            shifts=shifts,
            progress=progress,
        )
        remeasured = Analysis(
            analysis._source, engine, buckets=buckets, rows=rows, shifts=shifts, index=index, events=events
        )
        remeasured._joined = None if analysis._joined is None else analysis._joined.beside(remeasured)
        remeasured.notes = analysis.notes
        return remeasured
