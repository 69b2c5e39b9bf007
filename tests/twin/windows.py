"""The receive window that limits a direction, and the time in which it is closed."""

from __future__ import annotations

from dataclasses import dataclass

from twin.sequence import is_earlier

SECOND_NS = 10**9
PROBE_WITHIN_NS = 120 * SECOND_NS
"""TCP_RTO_MAX (include/net/tcp.h): a persist timer never waits longer for its first probe."""
SOON_NS = SECOND_NS // 5
"""Allowance for queues and a host's delays."""


@dataclass(frozen=True, slots=True)
class Advertisement:
    """A window in bytes (in units of its field if the scale is uncertain), as stated by a segment."""

    seq: int
    ack: int
    size: int
    unit: int
    is_new_ack: bool


@dataclass(slots=True)
class ReceiveWindow:
    """The window the sender has accepted: SND.WND, SND.WL1 and the right edge (RFC 9293 §3.10.7.4)."""

    is_known: bool = False
    size: int = 0
    wl1: int = 0
    edge: int = 0
    furthest: int = 0
    """The furthest right edge ever advertised."""
    last_raw: int = 0
    """The field of the last segment that was not older than an earlier one."""

    @property
    def is_closed(self) -> bool:
        return self.is_known and self.size == 0

    def anchor(self, at: int) -> None:
        """Place the edge of a window from a SYN whose sequence space was unknown."""
        if self.is_known:
            self.edge = self.furthest = at + self.size

    def accepts(self, new: Advertisement) -> bool:
        """Linux's tcp_may_update_window, since 6.6 with zero windows at an equal sequence number (800a666141de)."""
        is_wider = new.size > self.size or new.size == 0
        return not self.is_known or new.is_new_ack or new.seq > self.wl1 or (new.seq == self.wl1 and is_wider)

    def shrinks(self, new: Advertisement) -> bool:
        """Return whether the right edge moves left by a unit or more; less is rounding (RFC 7323 §2.4, RFC 9293
        SHLD-14).
        """
        retreat = self.edge - (new.ack + new.size)
        return self.is_known and retreat >= new.unit and new.seq >= self.wl1

    def accept(self, new: Advertisement) -> None:
        edge = new.ack + new.size
        self.furthest = max(self.furthest, edge) if self.is_known else edge
        self.is_known = True
        self.size, self.wl1, self.edge = new.size, new.seq, edge


@dataclass(slots=True)
class ZeroWindow:
    """The episode from the first accepted window of zero to the first above it, and its probes (RFC 9293 §3.8.6.1)."""

    since_ns: int | None = None
    probes: int = 0
    last_probe_ns: int = 0
    is_probe_unanswered: bool = False
    opened_ns: int | None = None
    opened_tsval: int | None = None

    @property
    def is_open(self) -> bool:
        """Return whether an episode is open."""
        return self.since_ns is not None

    def begin(self, now_ns: int) -> None:
        if self.since_ns is None:
            self.since_ns, self.probes = now_ns, 0

    def end(self) -> None:
        self.since_ns = None

    def note_opening(self, now_ns: int, tsval: int | None) -> None:
        self.opened_ns, self.opened_tsval = now_ns, tsval
        self.end()

    def probe(self, now_ns: int) -> None:
        self.probes += self.is_open
        self.last_probe_ns = now_ns
        self.is_probe_unanswered = True

    def is_too_late_to_probe(self, now_ns: int) -> bool:
        """Return whether no persist timer can be running, so that an apparent first probe is a keep-alive."""
        return self.since_ns is not None and not self.probes and now_ns - self.since_ns > PROBE_WITHIN_NS

    def is_answer(self, now_ns: int, round_trip_ns: int | None) -> bool:
        """Return whether a receiver's segment can answer the last probe: at least nine tenths of a round trip later,
        soon after.
        """
        if not self.is_probe_unanswered:
            return False
        elapsed_ns = now_ns - self.last_probe_ns
        if round_trip_ns is None:
            return elapsed_ns >= 0
        return round_trip_ns // 10 * 9 <= elapsed_ns <= 2 * round_trip_ns + SOON_NS

    def is_crossing(self, now_ns: int, tsecr: int | None, path_ns: int | None) -> bool:
        """Return whether a probe-like segment left before its sender knew of the opening: by its echo, otherwise by
        time.
        """
        if self.opened_ns is None:
            return False
        if self.opened_tsval is not None and tsecr is not None:
            return is_earlier(tsecr, self.opened_tsval)
        return path_ns is not None and now_ns - self.opened_ns < path_ns
