"""A direction's life after a change: each limit's time scaled, bounded by the capacity of the path and its ends.

In: Life, Path, Changes. Out: Lived: each limit's time after the change. Rates are in bytes per nanosecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf, log2, sqrt
from typing import NamedTuple

from tcpwin.kernel import measured_models, memory_models
from tcpwin.limits import Life
from tcpwin.paths.changes import Changes
from tcpwin.paths.path import SEND_SHARE, Path, rate_error

PAYLOAD_SHARE = 1448 / 1538
"""Share of a link's rate available to the payload of full Ethernet frames with timestamps."""
MATHIS = sqrt(3 / 2)
"""Reno's window in segments times the root of the loss (Mathis et al., 1997)."""
CUBIC = 1.054
"""CUBIC's (RFC 9438 §5.2, C of 0.4): times RTT^0.75 ÷ loss^0.75, in seconds."""
BBR_LOSS = 0.15
"""Above this loss, even BBR does not reach the path's rate."""
MSS_BYTES = 1448
REACHED = 0.7
"""Share of what a setting allows: a window that stayed below was bounded by something else."""
SEND_ERROR = 0.2
"""Relative error of the data in flight that one buffer allows compared with another."""
SELF_PACED = ("receiver_application", "sender_application", "requester_application", "idle")
ROUND_TRIPS = ("congestion_control", "handshake", "idle_restart", "round_trips")
"""Limits whose time is counted in round trips."""


class Caps(NamedTuple):
    """Maximum rate of each resource, in bytes per nanosecond; infinite if unknown."""

    path: float
    window: float
    send_buffer: float
    loss: float


_OF_CAP = {
    "path": "path_rate",
    "window": "receiver_window",
    "send_buffer": "send_buffer",
    "loss": "path_loss",
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """One choice of the uncertain values.

    Attributes:
        window_bytes: the largest window the receiver allows after the change; infinite if unbounded.
        send_bytes: data in flight that the send buffer allows after the change; `send_now_bytes` before; None if
            unknown.
        path_factor: factor for the measured path rate.
        is_cubic: whether the sender responds to loss and round trip like CUBIC, else like Reno.
    """

    window_bytes: float = inf
    send_bytes: float | None = None
    send_now_bytes: float | None = None
    path_factor: float = 1.0
    is_cubic: bool = True


@dataclass(frozen=True, slots=True)
class Lived:
    """A life after a change.

    Attributes:
        times_ns: time of each limit that binds after the change; a lifted limit's time belongs to the next one.
        is_open: whether a limit was lifted and the next one is unknown.
        ramp_ns: time for the congestion window to grow from the old flight to the new one.
    """

    times_ns: Mapping[str, float] = field(default_factory=dict)
    is_open: bool = False
    ramp_ns: float = 0.0

    @property
    def total_ns(self) -> float:
        return sum(self.times_ns.values())


def choices(path: Path, life: Life, changes: Changes) -> list[Numbers]:
    """Return every combination of the uncertain values, the likely one first."""
    windows = _windows(path, life, changes)
    sends = _sends(path, changes)
    is_measured = changes.rate_bps is None and bool(life.carried.path_bps)
    errors = (1.0, 1 - rate_error(life), 1 + rate_error(life)) if is_measured else (1.0,)
    algorithm = changes.algorithm or (path.algorithm.name if path.algorithm is not None else "")
    is_cubic = (True, False) if algorithm not in ("reno", "cubic") else (algorithm == "cubic",)
    return [
        Numbers(window, after, now, error, cubic)
        for window, (after, now), error, cubic in product(windows, sends, errors, is_cubic)
    ]


def _windows(path: Path, life: Life, changes: Changes) -> list[float]:
    """Return the largest windows that the receiver may allow after the change."""
    # 0 bytes means unknown: its scale is missing.
    end, seen = path.receiver, float(life.carried.window_bytes) or inf
    own = end.sizes("tcp_rmem")
    size = changes.rmem_max_bytes or (own[2] if own is not None else None)
    is_set = changes.rmem_max_bytes is not None or changes.adv_win_scale is not None
    if size is None:
        # Without settings, a window that never limited the sender may have been able to grow.
        return [seen] if seen == inf or is_set or "receiver_window" in life.times_ns else [inf, seen]
    scale = end.adv_win_scale if changes.adv_win_scale is None else changes.adv_win_scale
    models = memory_models(end.kernel, adv_win_scale=scale)
    if own is not None and seen != inf and life.times_ns.get("receiver_window"):
        reached = min(model.window_from_space(own[2]) for model in models)
        if seen >= REACHED * reached:
            seen_bytes = life.carried.window_bytes
            models = measured_models(end.kernel, buffer_bytes=own[2], window_bytes=seen_bytes, adv_win_scale=scale)
    windows = [float(model.window_from_space(size)) for model in models]
    return sorted({each if is_set or seen == inf else max(each, seen) for each in windows}, reverse=True)


def _sends(path: Path, changes: Changes) -> list[tuple[float | None, float | None]]:
    """Return the bytes in flight that the send buffer allows after and before the change."""
    now = path.send_buffer_bytes
    if changes.wmem_max_bytes is None:
        # The size a socket's buffer had reached does not bound its growth.
        values = (now.value, now.low, now.high) if now.high is not None else (None,)
        return [(each, each) for each in values]
    own = path.sender.sizes("tcp_wmem")
    usual = SEND_SHARE[1]
    before = None if own is None else usual * own[2]
    return [(usual * changes.wmem_max_bytes * error, before) for error in (1.0, 1 - SEND_ERROR, 1 + SEND_ERROR)]


def live(life: Life, path: Path, changes: Changes, numbers: Numbers) -> Lived:
    """Return the life after a change, for one choice of the uncertain values."""
    rtt = float(life.carried.round_trip_ns)
    rtt_after = changes.round_trip_ns or rtt
    stretch = rtt_after / rtt if rtt else 1.0
    if changes.rate_bps is not None and not life.carried.path_bps:
        life = life.over(changes.rate_bps * PAYLOAD_SHARE)
    caps, is_changed = _caps(life, path, changes, numbers, rtt_after)
    times: dict[str, float] = {}
    is_open, fastest, grown = False, 0.0, 0.0
    lifted = {*changes.lifted, *(("path_loss",) if changes.loss_share == 0 else ())}
    lifted |= {"idle_restart"} if changes.is_idle_restart_off else set()
    if changes.algorithm == "bbr" and (path.loss_share.value or 0.0) < BBR_LOSS:
        lifted |= {"path_loss"}
    for limit, ns in life.times_ns.items():
        silent_ns = float(min(life.silent_ns.get(limit, 0), ns))
        carried = life.carried_bytes(limit)
        own = carried / (ns - silent_ns) if ns > silent_ns else 0.0
        scale = inf if limit in lifted else _scale(limit, life, path, changes, numbers, stretch)
        bounded, by = _bounded(limit, own, own * scale if scale != inf else inf, caps, is_changed)
        if limit in lifted:
            silent_ns = 0.0
            if limit in ("path_rate", "path_policer"):
                bounded = min(4 * own, *(cap for name, cap in caps._asdict().items() if name != "path"))
                by = limit
        elif limit == "path_loss" and changes.loss_share is not None and path.loss_share.value:
            silent_ns = silent_ns * min(changes.loss_share / path.loss_share.value, 10.0)
        elif limit == "path_loss":
            silent_ns = silent_ns * (rtt_after + 2e8) / ((rtt or rtt_after) + 2e8)
        if limit in ROUND_TRIPS and limit not in lifted:
            after = ns * stretch if limit != "congestion_control" or life.is_growing or not numbers.is_cubic else ns
            if own and bounded < own:
                after = max(after, carried / bounded)
            times[limit] = times.get(limit, 0.0) + after
            continue
        if not own:
            waited = 0.0 if limit in lifted else float(ns)
            times[limit] = times.get(limit, 0.0) + waited
            continue
        is_open = is_open or bounded == inf
        fastest = max(fastest, own)
        grown = max(grown, bounded if bounded < inf else 0.0)
        moved = 0.0 if bounded == inf else carried / bounded
        if by != limit and bounded < inf:
            times[by] = times.get(by, 0.0) + moved
            times[limit] = times.get(limit, 0.0) + silent_ns
        else:
            times[limit] = times.get(limit, 0.0) + moved + silent_ns
    return Lived(times, is_open, _ramp_ns(fastest, grown, rtt_after))


def _ramp_ns(before: float, after: float, rtt_ns: float) -> float:
    """Return the extra cost of slow start, which doubles the flight each round trip and carries one flight in total."""
    if not before or after <= before:
        return 0.0
    return rtt_ns * (log2(after / before) - 1 + before / after)


def _caps(
    life: Life, path: Path, changes: Changes, numbers: Numbers, rtt_after: float
) -> tuple[Caps, Mapping[str, bool]]:
    carried = life.carried
    rate = changes.rate_bps * PAYLOAD_SHARE / 8e9 if changes.rate_bps is not None else carried.path_bps / 8e9
    loss = inf
    is_bbr = (changes.algorithm or (path.algorithm.name if path.algorithm else "")).startswith("bbr")
    if changes.loss_share and not is_bbr:
        loss = response(changes.loss_share, rtt_after, is_cubic=numbers.is_cubic)
    caps = Caps(
        path=rate * numbers.path_factor or inf,
        window=numbers.window_bytes / rtt_after if rtt_after else inf,
        send_buffer=numbers.send_bytes / rtt_after if numbers.send_bytes and rtt_after else inf,
        loss=loss,
    )
    is_rtt = changes.round_trip_ns is not None
    return caps, {
        "path": changes.rate_bps is not None,
        "window": changes.rmem_max_bytes is not None or changes.adv_win_scale is not None or is_rtt,
        "send_buffer": changes.wmem_max_bytes is not None or is_rtt,
        "loss": changes.loss_share is not None,
    }


def response(loss_share: float, rtt_ns: float, *, is_cubic: bool) -> float:
    """Return the rate that random loss leaves to a sender, in bytes per nanosecond."""
    segments = MATHIS / sqrt(loss_share)
    if is_cubic:
        segments = max(segments, CUBIC * (rtt_ns / 1e9) ** 0.75 / loss_share**0.75)
    return segments * MSS_BYTES / rtt_ns


def _scale(limit: str, life: Life, path: Path, changes: Changes, numbers: Numbers, stretch: float) -> float:
    """Return the speed-up of a limit's own bytes if nothing else bounded them."""
    if limit == "receiver_window":
        own = float(life.carried.window_bytes)
        is_set = changes.rmem_max_bytes is not None or changes.adv_win_scale is not None
        return (numbers.window_bytes / own if is_set and own else 1.0) / stretch
    if limit == "send_buffer":
        if changes.wmem_max_bytes is None:
            return 1 / stretch
        now = numbers.send_now_bytes
        return (numbers.send_bytes or 0.0) / now / stretch if now else inf
    if limit in ("path_rate", "path_policer") and changes.rate_bps is not None:
        rate = float(life.carried.path_bps) / 8e9
        return changes.rate_bps * PAYLOAD_SHARE / 8e9 / (rate * numbers.path_factor) if rate else 1.0
    if limit == "path_loss":
        share = changes.loss_share / path.loss_share.value if changes.loss_share and path.loss_share.value else 1.0
        return float(share**-0.75 * stretch**-0.25 if numbers.is_cubic else share**-0.5 / stretch)
    return 1.0


def _bounded(limit: str, own: float, wanted: float, caps: Caps, is_changed: Mapping[str, bool]) -> tuple[float, str]:
    """Return the rate that remains of the wanted one, and the limit that bounds it."""
    rate, by = wanted, limit
    for name, cap in caps._asdict().items():
        if _OF_CAP[name] == limit:
            continue
        # The reached rate is proven, so an unchanged bound cannot be lower.
        least = cap if is_changed[name] else max(cap, own)
        if least < rate:
            rate, by = least, _OF_CAP[name]
    return rate, by
