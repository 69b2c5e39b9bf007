"""Snapshots joined with a capture: which socket is which connection, clock offsets, comparison of samples.

In: an analysis of a capture, and snapshots. Out: Joined, kept by the analysis; and window shifts known only from the
sockets (`wscale:`), used to measure the capture a second time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from tcpwin.analysis import MeasuredConnection, Measurement, Shifts, View
from tcpwin.hosts.clock import Bounds, ClockOffset, estimate, given
from tcpwin.hosts.document import describe_host, describe_joined
from tcpwin.hosts.join import JoinedSample, join
from tcpwin.hosts.load import Host, Snapshots, load
from tcpwin.hosts.match import Match, Matcher
from tcpwin.hosts.scale import ScaleClaim, find_scale
from tcpwin.hosts.socket import SocketSample
from tcpwin.hosts.socket_track import SocketTrack

JOINED_BUCKETS = 1 << 16
"""Buckets of the series compared with samples; with fewer segments, each has a separate bucket."""
CLOCK_CONNECTIONS = 8
"""Connections used to compare a host's clock: those with most samples."""
CLOCK_SAMPLES = 2000


class Joined:
    """Host data joined with an analysis.

    Attributes:
        hosts: the hosts in the snapshots.
        notes: sentences about unread parts of bundles, and samples that could not be ordered.
    """

    def __init__(self, analysis: Measurement) -> None:
        self._analysis = analysis
        self.hosts: tuple[Host, ...] = ()
        self.notes: tuple[str, ...] = ()

    def beside(self, analysis: Measurement) -> Joined:
        """Join the same snapshots with the same capture, measured again."""
        beside = Joined(analysis)
        beside.hosts, beside.notes = self.hosts, self.notes
        beside._epochs.update(self._epochs)
        return beside

    def describe(self) -> dict[str, Any]:
        """Return the hosts for the JSON document."""
        return {"hosts": [describe_host(host) for host in self.hosts]} if self.hosts else {}

    def describe_samples(self, id: int) -> dict[str, Any]:
        """Return a connection's samples for the JSON document."""
        return {"snapshots": [describe_joined(each) for each in self.samples_beside(id)]} if self.hosts else {}

    def samples_beside(self, id: int) -> tuple[JoinedSample, ...]:
        """Return the samples of a connection's sockets joined with the packets, in time order."""

        found: list[JoinedSample] = []
        for host, side, samples in self.sockets_of(id):
            track = self._track(id, side)
            track.find_bases(samples, host.clock)
            found += join(track.connection, side, samples, host.clock or estimate(()), track)
        return tuple(sorted(found, key=lambda each: (each.time_ns is None, each.time_ns or 0)))

    def scale_claims(self, id: int) -> tuple[ScaleClaim, ...]:
        """Return the window scales according to the samples of a connection's sockets."""

        claims = []
        for _, side, samples in self.sockets_of(id):
            claims += find_scale(side, samples)
        return tuple(claims)

    def sockets_of(self, id: int) -> list[tuple[Host, str, list[SocketSample]]]:
        """Return each host's samples of a connection, with the side of the socket."""
        return [(host, side, samples) for host in self.hosts for side, samples in self._samples_of(host, id)]

    def _samples_of(self, host: Host, id: int) -> list[tuple[str, list[SocketSample]]]:
        """Return a host's samples of a connection; if several share its four-tuple, those within its time."""
        head, place = self._places.get(id, (id, 0))
        epochs = self._epochs.get(head, (head,))
        offset_ns = host.clock.offset_ns if host.clock is not None else 0
        found = []
        for match, samples in self._sockets.get((host.label, head), ()):
            if len(epochs) > 1:
                connections = self._analysis.connections
                end_ns = connections[epochs[place + 1]].start_ns if place + 1 < len(epochs) else None
                first_ns = connections[id].start_ns if place else None
                samples = _within(samples, first_ns, end_ns, offset_ns)
            if samples:
                found.append((match.side, samples))
        return found

    @cached_property
    def _sockets(self) -> dict[tuple[str, int], list[tuple[Match, list[SocketSample]]]]:
        """Index the hosts' sockets by host label and connection number."""
        found: dict[tuple[str, int], list[tuple[Match, list[SocketSample]]]] = {}
        for host in self.hosts:
            for match, samples in host.found.items():
                found.setdefault((host.label, match.connection), []).append((match, samples))
        return found

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """Map connections that share a four-tuple to the first of these, and their index among them."""
        return {id: (head, place) for head, ids in self._epochs.items() for place, id in enumerate(ids)}

    @cached_property
    def _epochs(self) -> dict[int, tuple[int, ...]]:
        return {}

    def _track(self, id: int, side: str) -> SocketTrack:
        if id not in self._wide:
            self._wide = {id: MeasuredConnection(self._analysis, id).view(buckets=JOINED_BUCKETS)}
        return SocketTrack(self._wide[id], side)

    @cached_property
    def _wide(self) -> dict[int, View]:
        """The most recently compared connection, with series of many buckets."""
        return {}

    def take(self, snapshots: Iterable[Snapshots], clock_offset_ns: int | None) -> Shifts:
        """Read the snapshots, compare the clocks, and return the window shifts known only from them."""

        matcher = Matcher(self._analysis)
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
        # The clock decides which of several connections with one four-tuple a sample belongs to.
        alone = [item for item in host.found.items() if item[0].connection not in self._epochs]
        ranked = sorted(alone, key=lambda item: len(item[1]), reverse=True)[:CLOCK_CONNECTIONS]
        views = self._analysis.views([match.connection for match, _ in ranked], buckets=JOINED_BUCKETS)
        bounds: list[Bounds] = []
        for view, (match, samples) in zip(views, ranked, strict=True):
            track = SocketTrack(view, match.side)
            thinned = samples[:: max(len(samples) // CLOCK_SAMPLES, 1)]
            track.find_bases(thinned)
            bounds += [track.bounds(sample) for sample in thinned]
        return estimate(bounds)

    def _unknown_shifts(self) -> Shifts:
        """Return both sides' shifts according to the sockets, for connections whose SYNs lack them."""
        shifts: Shifts = {}
        unsure = {
            id
            for state in ("unknown", "syn_only")
            for id, _ in self._analysis.select("direction", [("window_scale_state", "==", state)])
        }
        for id in unsure & {match.connection for host in self.hosts for match in host.found}:
            connection = MeasuredConnection(self._analysis, id)
            # A direction's scale applies to the windows that come back.
            scales = {"b": connection.a_to_b.window_scale, "a": connection.b_to_a.window_scale}
            is_unsure = any(scale.shift is None for scale in scales.values())
            claims = self.scale_claims(id)
            claimed = {(claim.side, claim.shift) for claim in claims}
            is_possible = all(scales[side].shift_min <= shift <= scales[side].shift_max for side, shift in claimed)
            if is_unsure and is_possible and len(claimed) == 2 and all(claim.is_exact for claim in claims):
                pair = ((dict(claimed)["a"], False), (dict(claimed)["b"], False))
                shifts[id] = pair if self._analysis._engine.began_with_initiator(id) else (pair[1], pair[0])
        return shifts


def _within(
    samples: list[SocketSample], first_ns: int | None, end_ns: int | None, offset_ns: int
) -> list[SocketSample]:
    """Return the samples within a time span by the capture's clock, in order, those without a time last."""

    def place(bound_ns: int | float) -> int:
        return bisect_left(samples, bound_ns, key=lambda each: math.inf if each.time_ns is None else each.time_ns)

    first = 0 if first_ns is None else place(first_ns - offset_ns)
    return samples[first : place(math.inf if end_ns is None else end_ns - offset_ns)]
