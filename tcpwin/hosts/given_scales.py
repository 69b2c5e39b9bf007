"""Window scales given by hand for hosts whose SYNs the capture lacks.

In: an analysis, and shifts by address. Out: shifts by connection, used to measure the capture a second time, and
warnings. A captured handshake is never overridden.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from tcpwin.analysis import MeasuredConnection, Measurement, Shifts
from tcpwin.errors import ArgumentError, SourceError
from tcpwin.hosts.scale import MAX_SHIFT

SIDES = ("a", "b")


@dataclass(slots=True)
class _Given:
    """Outcome for one host's shift."""

    connections: int = 0
    taken: int = 0
    notes: list[str] = field(default_factory=list)


def read_scales(scales: Mapping[str, int]) -> dict[str, int]:
    """Return the shifts by address in the capture's notation.

    Raises:
        ArgumentError: invalid address or shift.
    """
    read = {}
    for host, shift in scales.items():
        if shift not in range(MAX_SHIFT + 1):
            raise ArgumentError(f"{shift!r} is not a window scale: 0 to {MAX_SHIFT} (RFC 7323 section 2.3)")
        try:
            read[str(ip_address(host))] = shift
        except ValueError:
            raise ArgumentError(f"{host!r} is not an IP address of a host in the capture") from None
    return read


def given_shifts(analysis: Measurement, scales: Mapping[str, int]) -> tuple[Shifts, tuple[str, ...]]:
    """Return the shifts of connections whose handshake lacks them, and warnings.

    Raises:
        ArgumentError: as for `read_scales`.
        SourceError: a captured handshake contradicts the shift.
    """
    shifts: Shifts = {}
    notes: list[str] = []
    for host, shift in read_scales(scales).items():
        given = _Given()
        for side in SIDES:
            for id, _ in analysis.select("connection", [(f"{side}_address", "==", host)]):
                _give(analysis, MeasuredConnection(analysis, id), side, shift, shifts, given)
        notes += given.notes
        if not given.connections:
            notes.append(f"window scale of {host}: the capture has no such host")
        elif not given.taken:
            raise SourceError(f"window scale of {host}: all its handshakes were captured, and none agreed on scaling")
    return shifts, tuple(notes)


def override_shifts(analysis: Measurement, of_sockets: Shifts, by_hand: Shifts) -> tuple[Shifts, tuple[str, ...]]:
    """Merge both, preferring shifts given by hand, and warn if a socket contradicts one."""
    both = dict(of_sockets)
    notes = []
    for id, pair in by_hand.items():
        said = of_sockets.get(id, (None, None))
        both[id] = (pair[0] or said[0], pair[1] or said[1])
        connection = analysis.connections[id]
        ends = (connection.a, connection.b)
        if not analysis._engine.began_with_initiator(id):
            ends = (connection.b, connection.a)
        notes += [
            f"window scale of {end.address}: {given[0]} was given and is used, but in connection {id} its socket says "
            f"{other[0]}"
            for end, given, other in zip(ends, pair, said, strict=True)
            if given is not None and other is not None and given[0] != other[0]
        ]
    return both, tuple(notes)


def _give(
    analysis: Measurement, connection: MeasuredConnection, side: str, shift: int, shifts: Shifts, given: _Given
) -> None:
    """Apply the shift to a side of a connection, unless its handshake determines it."""
    given.connections += 1
    # A direction's scale applies to the windows that come back.
    scale = (connection.b_to_a if side == "a" else connection.a_to_b).window_scale
    host = connection.a if side == "a" else connection.b
    if scale.state == "disabled":
        return
    if scale.state in ("known", "syn_confirmed", "syn_only"):
        said = scale.shift if scale.shift is not None else scale.shift_max
        is_offer = scale.state == "syn_only"
        if shift != said and not (is_offer and shift == 0):
            raise SourceError(
                f"window scale of {host.address}: {shift} was given, but the handshake of connection {connection.id} "
                f"says {said}"
            )
    given.taken += 1
    if scale.state not in ("unknown", "syn_only"):
        return
    if not scale.shift_min <= shift <= scale.shift_max:
        given.notes.append(
            f"window scale of {host.address}: {shift} was given, but in connection {connection.id} more was in flight "
            f"than that allows: at least {scale.shift_min}"
        )
    place = side == ("a" if analysis._engine.began_with_initiator(connection.id) else "b")
    first, second = shifts.get(connection.id, (None, None))
    shifts[connection.id] = ((shift, True), second) if place else (first, (shift, True))
