"""One direction of a connection: data in one direction, acknowledgments and windows in the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tcpwin import _engine
from tcpwin.model import DirectionFields


@dataclass(frozen=True, slots=True)
class WindowScale:
    """The receiver's window scale, and how it is known (RFC 7323 §2).

    Attributes:
        state: ``known`` (both SYNs, or the SYN/ACK, carry the option), ``disabled`` (a SYN lacks the option),
            ``syn_confirmed`` (offered in the SYN; the SYN/ACK was not captured, but later windows make sense only when
            scaled), ``given`` (read from a snapshot of the socket), ``syn_only`` (offered in the SYN, and not
            confirmed)
            or ``unknown``.
        shift: the shift in use; None while the state is syn_only or unknown.
        shift_min, shift_max: the range that the packets allow; equal if the shift is certain.
        disabled_by: ``a``, ``b`` or ``both``: the side whose SYN lacks the option.
        evidence: the reasons, in words, with frame numbers.
    """

    state: str
    shift: int | None
    shift_min: int
    shift_max: int
    disabled_by: str | None
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        if self.shift is not None:
            return f"shift {self.shift} ({'from the SYNs' if self.state == 'known' else self.state})"
        return f"any shift from {self.shift_min} to {self.shift_max} is possible"


@dataclass(frozen=True, slots=True)
class ZeroWindowEpisode:
    """The time from the first accepted zero window to the next accepted window above zero.

    Attributes:
        start_frame, end_frame: frames of these two windows; `end_frame` is 0 if the window stayed closed.
        probes: zero-window probes sent in this time.
        first_probe_after_ns: time from the start to the first probe.
        last_probe_interval_ns: time between the last two probes; shows the back-off.
        ended_by: ``update`` (sent unprompted by the receiver), ``probe_answer`` (the update was lost or never sent),
            ``data`` (beyond every captured window: the capture lacks the update), ``reset``, or ``open`` (still closed
            at the end).
    """

    start_ns: int
    end_ns: int
    start_frame: int
    end_frame: int
    probes: int
    first_probe_after_ns: int
    last_probe_interval_ns: int
    ended_by: str

    @property
    def duration_ns(self) -> int:
        """Duration of the closed window."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Time-weighted percentiles (5, 25, 50, 75, 95 and 99 %) of a quantity, in bytes.

    `step_bytes` is the largest possible error; 0 if the values are exact.
    """

    p5: int | None
    p25: int | None
    p50: int | None
    p75: int | None
    p95: int | None
    p99: int | None
    step_bytes: int


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Percentiles (5, 25, 50, 75, 95 and 99 %) of the round trips of a direction's ACKs, in nanoseconds.

    Exact for up to 256 round trips, and within one part in 128 beyond.
    """

    p5_ns: int | None
    p25_ns: int | None
    p50_ns: int | None
    p75_ns: int | None
    p95_ns: int | None
    p99_ns: int | None


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Direction(DirectionFields):
    """Data from one side, limited by the other side's receive window.

    In ``a_to_b``, ``a`` sends and ``b`` receives: segments and bytes are a's, windows and duplicate ACKs are b's.
    ``tcpwin fields`` documents each field. None means that the capture does not show the value.
    """

    window_scale: WindowScale
    zero_window_episodes: tuple[ZeroWindowEpisode, ...]

    @classmethod
    def from_engine(cls, engine: _engine.Result, id: int, *, from_initiator: bool) -> Direction:
        """Create a direction that reads each field from the engine on first use, because most are never needed."""
        direction = object.__new__(cls)
        direction.__dict__["_place"] = _engine.Place(engine, id, from_initiator)
        return direction

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        return f"Direction({', '.join(f'{name}={value!r}' for name, value in self.__getstate__().items())})"

    def __eq__(self, other: object) -> bool:
        return self.__getstate__() == other.__getstate__() if isinstance(other, Direction) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__getstate__().values()))


def _window_scale(engine: _engine.Result, id: int, from_initiator: bool) -> WindowScale:
    state, shift, shift_min, shift_max, disabled_by = (
        engine.direction_value(id, from_initiator, f"window_scale_{part}")
        for part in ("state", "shift", "min", "max", "disabled_by")
    )
    evidence = tuple(engine.scale_evidence(id, from_initiator))
    return WindowScale(state, shift, shift_min, shift_max, disabled_by, evidence)


def _episodes(engine: _engine.Result, id: int, from_initiator: bool) -> tuple[ZeroWindowEpisode, ...]:
    return tuple(ZeroWindowEpisode(**episode) for episode in engine.episodes(id, from_initiator))


class _MadeAttribute:
    """A cached attribute that combines several of the engine's fields."""

    def __init__(self, name: str, make: Callable[[_engine.Result, int, bool], Any]) -> None:
        self._name = name
        self._make = make

    def __get__(self, instance: Direction | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        place: _engine.Place | None = instance.__dict__.get("_place")
        if place is None:
            raise AttributeError(f"no direction to take {self._name} of")
        value = instance.__dict__[self._name] = self._make(place.result, place.id, place.from_initiator)
        return value


_MADE: dict[str, Callable[[_engine.Result, int, bool], Any]] = {
    "window_scale": _window_scale,
    "zero_window_episodes": _episodes,
}
"""Attributes that combine several of the engine's fields; every other one is the engine's field of the same name."""

# Set after the class definition: the decorator would take these descriptors for the fields' defaults.
for _name in Direction.__dataclass_fields__:
    _make = _MADE.get(_name)
    setattr(Direction, _name, _engine.FieldAttribute(_name) if _make is None else _MadeAttribute(_name, _make))
