"""An analysis of a capture together with what its hosts said.

In: a capture and snapshots. Out: the Analysis of the capture, whose connections have their sockets' samples beside the
packets. Window scales that the capture lacks come from the sockets (`wscale:`), and the capture is then measured with
them.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tcpwin import _engine
from tcpwin.analysis import Analysis as CaptureAnalysis
from tcpwin.analysis import Connection as CaptureConnection
from tcpwin.analysis import Connections, View
from tcpwin.analysis import analyze as measure
from tcpwin.errors import SnapshotError
from tcpwin.hosts.bundle_capture import open_capture, opened
from tcpwin.sources import Packets, Source

if TYPE_CHECKING:
    # Without snapshots none of this is needed, and numpy's import costs more than reading a million packets.
    from tcpwin.hosts.bundle import Bundle
    from tcpwin.hosts.clock import Bounds, ClockOffset
    from tcpwin.hosts.join import JoinedSample
    from tcpwin.hosts.load import Host, Snapshots
    from tcpwin.hosts.match import Match
    from tcpwin.hosts.scale import ScaleClaim
    from tcpwin.hosts.socket import SocketSample
    from tcpwin.hosts.socket_track import SocketTrack

JOINED_BUCKETS = 1 << 16
"""Buckets of the series that samples are compared with: below as many segments each stands alone."""
CLOCK_CONNECTIONS = 8
"""Connections by which a host's clock is compared: those with most samples."""
CLOCK_SAMPLES = 2000


class Connection(CaptureConnection):
    """A connection, with the samples of its sockets."""

    _analysis: Analysis

    @cached_property
    def snapshots(self) -> tuple[JoinedSample, ...]:
        """The samples of this connection's sockets at both ends beside the packets, in order of time."""
        return self._analysis.joined(self.id)

    @property
    def analysis(self) -> Analysis:
        """The analysis that it is part of."""
        return self._analysis

    @property
    def socket_samples(self) -> dict[str, tuple[SocketSample, ...]]:
        """The samples of this connection's sockets as they were taken, by side; free, unlike `snapshots`."""
        found: dict[str, tuple[SocketSample, ...]] = {}
        for _, side, samples in self._analysis.sockets_of(self.id):
            found[side] = (*found.get(side, ()), *samples)
        return found

    @property
    def hosts(self) -> dict[str, Host]:
        """The host at each side of which there are samples, by side."""
        return {side: host for host, side, _ in self._analysis.sockets_of(self.id)}

    @property
    def scale_claims(self) -> tuple[ScaleClaim, ...]:
        """What the samples say of the window scales."""
        return self._analysis.scale_claims(self.id)


class Analysis(CaptureAnalysis):
    """All that was measured of a capture, and what its hosts said.

    Attributes:
        hosts: the hosts of the snapshots; empty without any.
        notes: sentences on what was not read of bundles, and on samples that could not be put in order.
    """

    hosts: tuple[Host, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def connections(self) -> Connections[Connection]:
        """The connections, in the order of their first segments."""
        return Connections(self, Connection)

    def worst(self, limit: int = 10) -> Sequence[Connection]:
        """Those that the receive window cost most time: closed, or too small for the next segment; worst first."""
        return [Connection(self, id) for id in self._engine.worst(limit)]

    def _head(self) -> dict[str, Any]:
        head = super()._head()
        if self.hosts:
            from tcpwin.hosts.document import describe_host

            head["hosts"] = [describe_host(host) for host in self.hosts]
        return head

    def _more(self, id: int) -> dict[str, Any]:
        if not self.hosts:
            return {}
        from tcpwin.hosts.document import describe_joined

        return {"snapshots": [describe_joined(each) for each in self.joined(id)]}

    def joined(self, id: int) -> tuple[JoinedSample, ...]:
        """The samples of a connection's sockets beside the packets, in order of time."""
        from tcpwin.hosts.clock import estimate
        from tcpwin.hosts.join import join

        found: list[JoinedSample] = []
        for host, side, samples in self.sockets_of(id):
            track = self._track(id, side)
            track.find_bases(samples, host.clock)
            found += join(track.connection, side, samples, host.clock or estimate(()), track)
        return tuple(sorted(found, key=lambda each: (each.time_ns is None, each.time_ns or 0)))

    def scale_claims(self, id: int) -> tuple[ScaleClaim, ...]:
        """What the samples of a connection's sockets say of its window scales."""
        from tcpwin.hosts.scale import find_scale

        claims = []
        for _, side, samples in self.sockets_of(id):
            claims += find_scale(side, samples)
        return tuple(claims)

    def sockets_of(self, id: int) -> list[tuple[Host, str, list[SocketSample]]]:
        """Each host's samples of a connection, with the side whose socket they are."""
        return [(host, side, samples) for host in self.hosts for side, samples in self._samples_of(host, id)]

    def _samples_of(self, host: Host, id: int) -> list[tuple[str, list[SocketSample]]]:
        """A host's samples of a connection; of several with the same four-tuple, those of its time."""
        head, place = self._places.get(id, (id, 0))
        epochs = self._epochs.get(head, (head,))
        offset_ns = host.clock.offset_ns if host.clock is not None else 0
        found = []
        for match, samples in self._sockets.get((host.label, head), ()):
            if len(epochs) > 1:
                end_ns = CaptureConnection(self, epochs[place + 1]).start_ns if place + 1 < len(epochs) else None
                first_ns = CaptureConnection(self, id).start_ns if place else None
                samples = _within(samples, first_ns, end_ns, offset_ns)
            if samples:
                found.append((match.side, samples))
        return found

    @cached_property
    def _sockets(self) -> dict[tuple[str, int], list[tuple[Match, list[SocketSample]]]]:
        """What each host has of a connection's sockets, by its label and the connection's number."""
        found: dict[tuple[str, int], list[tuple[Match, list[SocketSample]]]] = {}
        for host in self.hosts:
            for match, samples in host.found.items():
                found.setdefault((host.label, match.connection), []).append((match, samples))
        return found

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """Of connections that share their four-tuple with others: the first of these, and which of them it is."""
        return {id: (head, place) for head, ids in self._epochs.items() for place, id in enumerate(ids)}

    @cached_property
    def _epochs(self) -> dict[int, tuple[int, ...]]:
        return {}

    def _track(self, id: int, side: str) -> SocketTrack:
        from tcpwin.hosts.socket_track import SocketTrack

        if id not in self._wide:
            self._wide = {id: CaptureConnection(self, id).view(buckets=JOINED_BUCKETS)}
        return SocketTrack(self._wide[id], side)

    @cached_property
    def _wide(self) -> dict[int, View]:
        """The connection that was compared last, with series of many buckets."""
        return {}

    def _take_snapshots(self, snapshots: Iterable[Snapshots], clock_offset_ns: int | None) -> dict[int, Any]:
        """Read the snapshots, compare the clocks, and return the window shifts that only they know."""
        from tcpwin.hosts.clock import given
        from tcpwin.hosts.load import load
        from tcpwin.hosts.match import Matcher

        matcher = Matcher(self)
        notes: list[str] = []
        self.hosts = tuple(load(snapshots, matcher, notes=notes))
        self.notes = tuple(notes)
        self._epochs.update(matcher.epochs())
        for host in self.hosts:
            if clock_offset_ns is not None:
                host.clock = given(clock_offset_ns)
            elif host.found:
                host.clock = self._compare_clock(host)
        return self._unknown_shifts()

    def _compare_clock(self, host: Host) -> ClockOffset:
        from tcpwin.hosts.clock import estimate
        from tcpwin.hosts.socket_track import SocketTrack

        # Which of several connections with one four-tuple a sample is of, the clock has to tell first.
        alone = [item for item in host.found.items() if item[0].connection not in self._epochs]
        ranked = sorted(alone, key=lambda item: len(item[1]), reverse=True)[:CLOCK_CONNECTIONS]
        views = self.views([match.connection for match, _ in ranked], buckets=JOINED_BUCKETS)
        bounds: list[Bounds] = []
        for view, (match, samples) in zip(views, ranked, strict=True):
            track = SocketTrack(view, match.side)
            thinned = samples[:: max(len(samples) // CLOCK_SAMPLES, 1)]
            track.find_bases(thinned)
            bounds += [track.bounds(sample) for sample in thinned]
        return estimate(bounds)

    def _unknown_shifts(self) -> dict[int, tuple[int, int]]:
        """Shifts of both sides, by the sockets, of connections whose SYNs do not tell."""
        shifts = {}
        unsure = {
            id
            for state in ("unknown", "syn_only")
            for id, _ in self.select("direction", [("window_scale_state", "==", state)])
        }
        for id in unsure & {match.connection for host in self.hosts for match in host.found}:
            connection = CaptureConnection(self, id)
            # A direction's scale is that of the windows that come back.
            scales = {"b": connection.a_to_b.window_scale, "a": connection.b_to_a.window_scale}
            is_unsure = any(scale.shift is None for scale in scales.values())
            claims = self.scale_claims(id)
            claimed = {(claim.side, claim.shift) for claim in claims}
            is_possible = all(scales[side].shift_min <= shift <= scales[side].shift_max for side, shift in claimed)
            if is_unsure and is_possible and len(claimed) == 2 and all(claim.is_exact for claim in claims):
                pair = (dict(claimed)["a"], dict(claimed)["b"])
                shifts[id] = pair if self._engine.began_with_initiator(id) else (pair[1], pair[0])
        return shifts


AnalysisT = TypeVar("AnalysisT", bound=Analysis)


def analyze(
    source: Packets | Source | Bundle,
    *,
    snapshots: Iterable[Snapshots] = (),
    capture: str | None = None,
    clock_offset_ns: int | None = None,
    follow: Iterable[int] | None = None,
    buckets: int = 1024,
    rows: int = 0,
    index: str | os.PathLike[str] | None = None,
    progress: Callable[[int], object] | None = None,
    kind: type[AnalysisT] = Analysis,  # type: ignore[assignment]
) -> AnalysisT:
    """Read a capture once and measure every connection in it; with snapshots, put them beside it.

    Arguments and errors are those of `tcpwin.analyze`, which gives the last stage's class.

    Args:
        kind: the class of what is returned: a later stage's own.
    """
    wanted = list(snapshots)
    with opened(source) as bundle:
        if bundle is not None:
            wanted.append(bundle)
        elif capture is not None:
            raise SnapshotError("is no bundle, so that no capture in it can be chosen", str(source))
        packets = cast("Packets | Source", source) if bundle is None else open_capture(bundle, capture)
        return _analyze(packets, wanted, clock_offset_ns, follow, buckets, rows, index, progress, kind)


def _analyze(
    source: Packets | Source,
    snapshots: list[Snapshots],
    clock_offset_ns: int | None,
    follow: Iterable[int] | None,
    buckets: int,
    rows: int,
    index: str | os.PathLike[str] | None,
    progress: Callable[[int], object] | None,
    kind: type[AnalysisT],
) -> AnalysisT:
    base = measure(source, follow=follow, buckets=buckets, rows=rows, index=index, progress=progress)
    analysis = kind(base._source, base._engine, buckets=buckets, rows=rows, index=index)
    if snapshots:
        shifts = analysis._take_snapshots(snapshots, clock_offset_ns)
        if shifts:
            hosts, notes, epochs = analysis.hosts, analysis.notes, analysis._epochs
            again = _engine.analyze(
                base._source.open(),
                name=base._source.name,
                follow=None if follow is None else set(follow),
                buckets=buckets,
                rows=rows,
                shifts=shifts,
                progress=progress,
            )
            analysis = kind(base._source, again, buckets=buckets, rows=rows, shifts=shifts, index=index)
            analysis.hosts, analysis.notes = hosts, notes
            analysis._epochs.update(epochs)
    return analysis


def _within(
    samples: list[SocketSample], first_ns: int | None, end_ns: int | None, offset_ns: int
) -> list[SocketSample]:
    """Samples from a time on and before another, by the capture's clock. They are in order, those without one last."""

    def place(bound_ns: int | float) -> int:
        return bisect_left(samples, bound_ns, key=lambda each: math.inf if each.time_ns is None else each.time_ns)

    first = 0 if first_ns is None else place(first_ns - offset_ns)
    return samples[first : place(math.inf if end_ns is None else end_ns - offset_ns)]
