"""The effect of a change: throughput and duration with an interval, and the next limit.

In: a connection, changes. Out: Prediction, or WhatIfError if the capture is insufficient. The gain of lifting one limit
alone is the verdict's cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from tcpwin.analysis import Direction
from tcpwin.errors import TcpwinError
from tcpwin.kernel import memory_models
from tcpwin.limits import LIMIT_NAMES, Analysis, Connection, Life, Verdict, analysis_of, life_of
from tcpwin.paths.changes import LIFTABLE, Changes, read_changes
from tcpwin.paths.model import PAYLOAD_SHARE, REACHED, SELF_PACED, Lived, choices, live
from tcpwin.paths.path import Path, fit_path
from tcpwin.units import rate_text, share_text, time_text

if TYPE_CHECKING:
    from tcpwin.sources import Packets

ERROR = 0.1
"""Relative error of a duration: two runs of one transfer differ by this much."""
LOSS_ERROR = 0.25
"""Relative error with random losses, which differ in each run and so does the remaining rate."""
WIDE = 1.5
"""Largest ratio of an interval's ends to the likely value; beyond, a prediction is only possible."""
UNKNOWN_SHARE = 0.5
"""Share of the life: if more is unknown, no prediction is possible."""
OVERSHOT_BYTES = 64 << 10
"""Size of an unsegmented write, by which a send buffer may exceed its limit."""
BEYOND = 3
"""Multiple of the reached rate beyond which nothing shows that the path carries it."""
OWN_PACE = 1.5
"""A plateau below this many windows per round trip may be the pace of a window-limited sender."""
LEAST_BYTES = 100_000
"""Smaller transfers end while windows are still growing."""
FULL_SHARE = 0.7
"""Share of the life: if the path was full for less, a faster one may meet another limit."""
BY_PATH = ("path_rate", "path_policer")
PAUSING = ("sender_application", "requester_application", "idle")
"""Limits whose time is pauses of the sender, after which it starts again slowly."""


class WhatIfError(TcpwinError):
    """A capture that is insufficient for a prediction."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number with its likely interval."""

    likely: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted effect of a change. Attributes:
    changes: the changes as given.
    duration_ns: the connection's duration; `before_ns` is the original.
    goodput_bps: goodput during the time with data; `before_bps` is the original.
    limit: limit with the most time after the change; `before_limit` is the verdict's.
    confidence: ``likely``, or ``possible`` with `doubts` or a wide interval.
    doubts: reasons for doubt, one sentence each.
    text: one-line summary.
    """

    changes: tuple[str, ...]
    before_ns: int
    duration_ns: Range
    before_bps: float
    goodput_bps: Range
    before_limit: str
    limit: str
    confidence: str
    doubts: tuple[str, ...]
    text: str

    @property
    def gain_ns(self) -> float:
        """Return how much sooner it would have ended; negative if later."""
        return self.before_ns - self.duration_ns.likely


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A connection under changes.

    Attributes:
        path: the path as the capture shows it.
        verdict: the verdict of the original connection.
        prediction: prediction for the given changes; None without any.
        each: predictions for every limit with time, lifted alone, the largest gain first.
        unsaid: limits without a prediction, each with the reason.
    """

    path: Path
    verdict: Verdict
    prediction: Prediction | None
    each: tuple[Prediction, ...]
    unsaid: tuple[tuple[str, str], ...]


def whatif(
    connection: Connection | Analysis | Packets,
    settings: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    *,
    lift: Iterable[str] = (),
    loss_share: float | None = None,
    round_trip_ns: float | None = None,
    rate_bps: float | None = None,
    each: bool = False,
) -> WhatIf:
    """Predict the effect of changes to a connection, with its verdict's cost model.

    >>> whatif(connection, {"receiver.tcp_rmem": "32M", "sender.tcp_wmem": "16M"}).prediction.goodput_bps

    Args:
        connection: a connection, or an analysis or anything that :func:`tcpwin.analyze` reads: its worst connection.
        settings: ``receiver.tcp_rmem``, ``receiver.tcp_adv_win_scale``, ``sender.tcp_wmem``,
            ``sender.tcp_congestion_control``, ``sender.tcp_slow_start_after_idle``; client and server name ends too.
        lift: limits to lift, of `tcpwin.limits.LIMITS`.
        loss_share: the path's new loss.
        round_trip_ns: the path's new round trip.
        rate_bps: the path's new link rate, including headers. If the capture does not show the path's rate, it is the
            rate before and after.
        each: also lift every limit alone.

    Raises:
        ChangeError: a change is invalid.
        WhatIfError: the capture is insufficient.
        TcpwinError: it cannot be read; see :func:`tcpwin.analyze`.
    """
    if not isinstance(connection, Connection):
        connection = _worst(analysis_of(connection))
    verdict = connection.verdict
    path = fit_path(connection, verdict.direction)
    if path is None or verdict.direction is None:
        raise WhatIfError(f"connection {connection.id} carried no data, so no prediction is possible")
    changes = read_changes(
        path, settings, lift=lift, loss_share=loss_share, round_trip_ns=round_trip_ns, rate_bps=rate_bps
    )
    data = connection.a_to_b if verdict.direction == "a_to_b" else connection.b_to_a
    life = life_of(connection, verdict.direction)
    _check(connection, data, life, verdict)
    case = _Case(connection, data, life, path, verdict)
    prediction = None if changes.is_empty else case.predict(changes)
    ranked, unsaid = case.each(changes.rate_bps) if each else ((), ())
    return WhatIf(path, verdict, prediction, ranked, unsaid)


def _worst(analysis: Analysis) -> Connection:
    worst = analysis.worst(1)
    if not worst:
        raise WhatIfError(f"{analysis.name} has no TCP connection, so no prediction is possible")
    return worst[0]


def _check(connection: Connection, data: Direction, life: Life, verdict: Verdict) -> None:
    """Raise an error if no prediction is possible."""
    name = f"connection {connection.id}"
    if connection.sampled:
        raise WhatIfError(f"{name}: the capture contains only sampled packets, so no prediction is possible")
    if not life.total_ns or life.carried.bytes < LEAST_BYTES:
        raise WhatIfError(
            f"{name} carried {life.carried.bytes:,} bytes, and transfers of less than {LEAST_BYTES:,} end while "
            "windows are still growing, so no prediction is possible"
        )
    unknown = life.times_ns.get("capture", 0) / life.total_ns
    if unknown > UNKNOWN_SHARE or verdict.limit == "capture":
        raise WhatIfError(
            f"{name}: its limit is unknown for {share_text(unknown)} of its time, so no prediction is possible"
        )
    if not life.carried.round_trip_ns:
        raise WhatIfError(f"{name}: its round trip is unknown, and with it the rate of any window")
    if data.stall_at_end is not None:
        raise WhatIfError(f"{name} ends in a stall: it is unknown when it would have ended")


@dataclass(frozen=True, slots=True)
class _Case:
    connection: Connection
    data: Direction
    life: Life
    path: Path
    verdict: Verdict

    @property
    def _unknown_path(self) -> str:
        return (
            f"connection {self.connection.id}: the capture does not show what its path carries, only that it carries "
            f"{rate_text(self.data.goodput_bps)}; give it with --rate"
        )

    def each(self, rate_bps: float | None) -> tuple[tuple[Prediction, ...], tuple[tuple[str, str], ...]]:
        """Predict every limit with time, lifted alone."""
        found, unsaid = [], []
        for limit in self.life.times_ns:
            if limit not in LIFTABLE:
                continue
            try:
                found.append(self.predict(Changes(lifted=(limit,), words=(f"lift {limit}",)), rate_bps))
            except WhatIfError as error:
                unsaid.append((limit, str(error)))
        return tuple(sorted(found, key=lambda each: -each.gain_ns)), tuple(unsaid)

    def predict(self, changes: Changes, rate_bps: float | None = None) -> Prediction:
        """Predict the effect of the changes. Args:
        rate_bps: the path's rate, if the capture does not show it.
        """
        life = self.life
        if not life.carried.path_bps and (rate_bps or changes.rate_bps):
            life = life.over((rate_bps or changes.rate_bps or 0.0) * PAYLOAD_SHARE)
        limit = changes.only_lift
        doubts = self._doubts(life, changes)
        if limit is not None:
            likely, low, high, binds = self._lifted(life, limit)
        else:
            likely, low, high, binds, more = self._changed(life, changes)
            doubts += more
        floor = self._floor_ns(changes)
        if limit is not None and self._is_open(life, limit):
            likely, low, high = max(likely, min(floor, high)), min(low, floor), max(high, float(life.total_ns))
        elif limit is not None and floor > likely * (1 + ERROR):
            doubts.append(f"slow start alone takes {time_text(floor)}, which the cost of a limit does not include")
        if limit is None:
            likely = max(likely, floor)
        low, high = min(low, likely) * (1 - ERROR), max(high, likely, min(floor, life.total_ns)) * (1 + ERROR)
        low = max(low, min(floor, likely))
        if changes.loss_share is not None:
            low, high = min(low, likely * (1 - LOSS_ERROR)), max(high, likely * (1 + LOSS_ERROR))
        if doubts:
            low, high = min(low, likely / WIDE), max(high, likely * WIDE)
        is_wide = high > likely * WIDE * (1 + ERROR) or low * WIDE * (1 + ERROR) < likely
        return self._worded(changes, Range(likely, low, high), binds, doubts, _most_bps(life, changes), is_wide=is_wide)

    def _lifted(self, life: Life, limit: str) -> tuple[float, float, float, str]:
        """Lift one limit alone, with the verdict's cost."""
        gain = life.gain(limit)
        total, restarts = life.total_ns, _restarts_ns(life, limit)
        after = live(life, self.path, Changes(lifted=(limit,)), choices(self.path, life, Changes())[0])
        likely, low = total - gain.likely_ns - restarts, total - gain.high_ns - restarts
        return likely, low, total - gain.low_ns, _binding(after)

    def _is_open(self, life: Life, limit: str) -> bool:
        """Whether the rate without a limit depends on a path whose rate the capture does not show."""
        carrying_ns = life.times_ns.get(limit, 0) - life.silent_ns.get(limit, 0)
        return not life.carried.path_bps and carrying_ns > ERROR * life.total_ns

    def _changed(self, life: Life, changes: Changes) -> tuple[float, float, float, str, list[str]]:
        """Apply all changes together."""
        is_unscaled = self.data.window_scale.state == "disabled"
        if is_unscaled:
            # The window stays within its 16 bits, whatever the buffer holds (RFC 7323 §2).
            changes = replace(changes, rmem_max_bytes=None, adv_win_scale=None)
        lives = [live(life, self.path, changes, numbers) for numbers in choices(self.path, life, changes)]
        first = lives[0]
        if first.is_open:
            raise WhatIfError(self._unknown_path)
        is_window = changes.rmem_max_bytes is not None or changes.adv_win_scale is not None
        if is_window and not life.carried.window_bytes:
            raise WhatIfError(
                f"connection {self.connection.id}: its receive window is not known, as the window scale is missing; "
                "give it with --window-scale"
            )
        totals = [each.total_ns for each in lives if not each.is_open]
        likely = first.total_ns + first.ramp_ns
        doubts = []
        if not life.carried.path_bps and likely * BEYOND < life.total_ns:
            raise WhatIfError(self._unknown_path)
        if likely < life.total_ns * (1 - ERROR) and not life.carried.path_bps:
            doubts.append(
                f"the capture does not show that the path carries more than {rate_text(self.data.goodput_bps)}; --rate "
                "says it"
            )
            totals.append(float(life.total_ns))
        return likely, min(totals), max(totals) + 2 * first.ramp_ns, _binding(first), doubts

    def _floor_ns(self, changes: Changes) -> float:
        """Return the minimum time of slow start for the bytes, from the first flight on, after the handshake."""
        rtt = changes.round_trip_ns or self.life.carried.round_trip_ns
        flight, sent, rounds = max(self.life.carried.first_flight_bytes, 1448), 0, 0
        while sent < self.life.carried.bytes:
            sent, flight, rounds = sent + flight, 2 * flight, rounds + 1
        if "congestion_control" in changes.lifted:
            rounds = 1
        handshake = self.life.times_ns.get("handshake", 0) * rtt / self.life.carried.round_trip_ns
        return float(rounds * rtt + handshake)

    def _doubts(self, life: Life, changes: Changes) -> list[str]:
        """Return reasons why the model may be wrong."""
        doubts = []
        lifted = [limit for limit in changes.lifted if life.times_ns.get(limit)]
        for limit in lifted:
            if limit in SELF_PACED:
                doubts.append("the capture does not show how the application behaves without its own pace")
            if limit == "path_policer":
                doubts.append("the capture does not show what the path carries without the policer")
            elif self._is_open(life, limit):
                doubts.append(
                    "the capture does not show what the path carries, only that it carries "
                    f"{rate_text(self.data.goodput_bps)}: give it with --rate"
                )
        times = life.times_ns
        if "receiver_window" in changes.lifted and times.get("receiver_application", 0) > ERROR * life.total_ns:
            doubts.append("a larger window also takes what a reader that pauses does not read at once")
        if "send_buffer" in changes.lifted and times.get("sender_application", 0) > ERROR * life.total_ns:
            doubts.append("a writer that waits for room in the send buffer may write sooner with a larger one")
        if "congestion_control" in changes.lifted and times.get("path_rate", 0) > FULL_SHARE * life.total_ns:
            doubts.append("a larger congestion window may take a larger share of a path that others use, too")
        if self.data.window_scale.state == "disabled":
            if changes.rmem_max_bytes is not None or changes.adv_win_scale is not None:
                doubts.append(
                    "window scaling is off, so the window stays within 65,535 bytes whatever the buffer is: see "
                    "net.ipv4.tcp_window_scaling of both ends"
                )
        elif changes.rmem_max_bytes is not None:
            end, seen = self.path.receiver, life.carried.window_bytes
            own = end.sizes("tcp_rmem")
            models = memory_models(end.kernel, adv_win_scale=end.adv_win_scale)
            allowed = 0 if own is None else min(model.window_from_space(own[2]) for model in models)
            if seen and seen < REACHED * allowed and "receiver_window" in life.times_ns:
                doubts.append(
                    "the window already stayed below what tcp_rmem allows: the program set its buffer, or the transfer "
                    "was too short for it to grow"
                )
        if changes.wmem_max_bytes is not None and self.path.send_buffer_bytes.value is None:
            doubts.append("it is unknown what the send buffer allows now: add a snapshot of the sender (--with)")
        if changes.wmem_max_bytes is not None and changes.wmem_max_bytes < 2 * OVERSHOT_BYTES:
            doubts.append("a send buffer this small is exceeded by a whole segment")
        if "path_rate" in changes.lifted and 0 < life.times_ns.get("path_rate", 0) < FULL_SHARE * life.total_ns:
            doubts.append("something other than the path took much of the time, which a faster path may meet sooner")
        if self.verdict.limit == "path_loss" and set(changes.lifted) & {*BY_PATH, "congestion_control"}:
            doubts.append("losses may come from a policer or other traffic, and then other changes help")
        if self._may_be_own_pace(life) and (lifted or changes.rmem_max_bytes or changes.wmem_max_bytes):
            doubts.append("the assumed path rate may be the sender's own pace, because the path was never filled")
        if self.verdict.confidence == "possible":
            doubts.append("what limited it is itself only possible")
        if changes.algorithm is not None:
            doubts.append("the capture does not show how another congestion control shares the path with other traffic")
        return doubts

    def _may_be_own_pace(self, life: Life) -> bool:
        """Whether the plateau may be the pace of a sender that paces at its window, like BBR."""
        carried, algorithm = life.carried, self.path.algorithm
        if not carried.path_bps or "path_rate" in life.times_ns or (algorithm is not None and not algorithm.is_bbr):
            return False
        return bool(carried.path_bps < OWN_PACE * carried.window_bytes * 8e9 / carried.round_trip_ns)

    def _worded(
        self, changes: Changes, duration: Range, binds: str, doubts: list[str], most_bps: float, *, is_wide: bool
    ) -> Prediction:
        life = self.life
        before_bps = self.data.goodput_bps or life.carried.bytes * 8e9 / life.total_ns
        idle_ns = max(life.total_ns - life.carried.bytes * 8e9 / before_bps, 0.0)
        most_bps = max(most_bps, before_bps)
        goodput = Range(
            *(min(self._goodput(ns, idle_ns), most_bps) for ns in (duration.likely, duration.high, duration.low))
        )
        confidence = "possible" if doubts or is_wide else "likely"
        change = abs(duration.likely / life.total_ns - 1)
        what = f"{time_text(duration.likely)} instead of {time_text(life.total_ns)}"
        if change < 0.01:
            what = f"{time_text(life.total_ns)} as before"
        text = (
            f"{', '.join(changes.words)}: {what} ({time_text(duration.low)} to {time_text(duration.high)}), "
            f"{rate_text(goodput.likely)}; then limited by {LIMIT_NAMES[binds]} ({confidence})."
        )
        return Prediction(
            changes.words,
            life.total_ns,
            duration,
            before_bps,
            goodput,
            self.verdict.limit,
            binds,
            confidence,
            tuple(dict.fromkeys(doubts)),
            text,
        )

    def _goodput(self, duration_ns: float, idle_ns: float) -> float:
        """Return the goodput during the time with data; time before and after it is unchanged."""
        return float(self.life.carried.bytes) * 8e9 / max(duration_ns - idle_ns, duration_ns / 10, 1.0)


def _most_bps(life: Life, changes: Changes) -> float:
    """Return the payload rate of the path after the changes; infinite if it is not known or is lifted."""
    if set(changes.lifted) & {*BY_PATH} or not (changes.rate_bps or life.carried.path_bps):
        return inf
    return changes.rate_bps * PAYLOAD_SHARE if changes.rate_bps else life.carried.path_bps


def _restarts_ns(life: Life, limit: str) -> float:
    """Return the time of restarts after idle that would not happen without an application's pauses: its part of all."""
    if limit not in SELF_PACED or limit not in PAUSING:
        return 0.0
    times = life.times_ns
    pauses = sum(times.get(each, 0) for each in PAUSING)
    return times.get("idle_restart", 0) * times.get(limit, 0) / max(pauses, 1)


def _binding(after: Lived) -> str:
    """Return the limit with the most time."""
    times = {limit: ns for limit, ns in after.times_ns.items() if limit not in ("none", "handshake")}
    return max(times, key=lambda limit: times[limit], default="none")
