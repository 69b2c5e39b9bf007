"""What would come of a change: throughput and duration with an interval, and what limits then.

In: a connection, changes. Out: Prediction, or WhatIfError where the capture cannot say. A limit lifted alone costs what
the verdict says that it cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tcpwin.analysis import Direction
from tcpwin.errors import TcpwinError
from tcpwin.kernel import memory_models
from tcpwin.limits import LIMIT_NAMES, Connection, Life, Verdict, life_of
from tcpwin.paths.changes import LIFTABLE, Changes, read_changes
from tcpwin.paths.model import PAYLOAD_SHARE, REACHED, SELF_PACED, Lived, choices, live
from tcpwin.paths.path import Path, fit_path
from tcpwin.units import rate_text, share_text, time_text

ERROR = 0.1
"""Of a duration: two runs of one transfer differ by as much."""
LOSS_ERROR = 0.25
"""Losses by chance are other ones in each run, and what they leave to a sender spreads as much."""
WIDE = 1.5
"""By which the ends of an interval may be apart of what is likely; beyond, a prediction is only possible."""
UNKNOWN_SHARE = 0.5
"""Of the life: where more of it is not known, nothing follows."""
OVERSHOT_BYTES = 64 << 10
"""A segment before it is cut: so much may be in a send buffer beyond its size."""
BEYOND = 3
"""Times the rate that was reached: faster, nothing shows that the path carries it."""
OWN_PACE = 1.5
"""A plateau that is not above so many windows a round trip may be the pace of a sender that the window limits."""
LEAST_BYTES = 100_000
"""A transfer of less is over while windows grow."""
FULL_SHARE = 0.7
"""Of the life: a path that was full for less leaves room for what a faster one would meet."""
BY_PATH = ("path_rate", "path_policer")


class WhatIfError(TcpwinError):
    """A capture that cannot say what would come of a change."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number, with the interval in which it is likely to be."""

    likely: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What would come of a change.

    Attributes:
        changes: as they were asked for, in words.
        duration_ns: of the connection; `before_ns` is what it was.
        goodput_bps: of the data while it lasted; `before_bps` is what it was.
        limit: that takes most time then; `before_limit` is the verdict's.
        confidence: ``likely``, or ``possible`` where `doubts` say why, or the interval is wide.
        doubts: what may make it otherwise, a sentence each.
        text: in a line.
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
        """By how much sooner it would have ended; below 0 where later."""
        return self.before_ns - self.duration_ns.likely


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A connection under changes.

    Attributes:
        path: as the capture shows it.
        verdict: on the connection as it was.
        prediction: of the changes asked for; None without any.
        each: every limit that had time lifted alone, the one that gains most first.
        unsaid: limits of which the capture cannot say what their lifting gains, each with the reason.
    """

    path: Path
    verdict: Verdict
    prediction: Prediction | None
    each: tuple[Prediction, ...]
    unsaid: tuple[tuple[str, str], ...]


def whatif(
    connection: Connection,
    settings: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    *,
    lift: Iterable[str] = (),
    loss_share: float | None = None,
    round_trip_ns: float | None = None,
    rate_bps: float | None = None,
    each: bool = False,
) -> WhatIf:
    """What would come of changes to a connection, by the cost model of its verdict.

    >>> whatif(connection, {"receiver.tcp_rmem": "32M", "sender.tcp_wmem": "16M"}).prediction.goodput_bps

    Args:
        settings: ``receiver.tcp_rmem``, ``receiver.tcp_adv_win_scale``, ``sender.tcp_wmem``,
            ``sender.tcp_congestion_control``, ``sender.tcp_slow_start_after_idle``; client and server name ends too.
        lift: limits to lift, of `tcpwin.limits.LIMITS`.
        loss_share: of the path, changed.
        round_trip_ns: of the path, changed.
        rate_bps: of the path, changed, as links are told, headers included. Where the capture does not show the path's
            rate, it is what the rate was and will be.
        each: lift every limit alone besides.

    Raises:
        ChangeError: a change is none.
        WhatIfError: the capture cannot say what would come of it.
    """
    verdict = connection.verdict
    path = fit_path(connection, verdict.direction)
    if path is None or verdict.direction is None:
        raise WhatIfError(f"connection {connection.id} carried no data: nothing can be predicted of it")
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


def _check(connection: Connection, data: Direction, life: Life, verdict: Verdict) -> None:
    """Refuse what nothing follows from."""
    name = f"connection {connection.id}"
    if connection.sampled:
        raise WhatIfError(f"{name}: the capture holds samples of its packets only, and nothing follows from them")
    if not life.total_ns or life.carried.bytes < LEAST_BYTES:
        raise WhatIfError(
            f"{name} carried {life.carried.bytes:,} bytes, and what less than {LEAST_BYTES:,} take is over while "
            "windows grow: nothing can be predicted"
        )
    unknown = life.times_ns.get("capture", 0) / life.total_ns
    if unknown > UNKNOWN_SHARE or verdict.limit == "capture":
        raise WhatIfError(
            f"{name}: what limited it is not known for {share_text(unknown)} of its time: nothing follows"
        )
    if not life.carried.round_trip_ns:
        raise WhatIfError(f"{name}: its round trip is not known, and with it no window's rate")
    if data.stall_at_end is not None:
        raise WhatIfError(f"{name} ends in a stall: when it would have ended is not known")


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
            f"{rate_text(self.data.goodput_bps)}; --rate says it"
        )

    def each(self, rate_bps: float | None) -> tuple[tuple[Prediction, ...], tuple[tuple[str, str], ...]]:
        """Every limit that had time, lifted alone."""
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
        """What would come of the changes.

        Args:
            rate_bps: of the path, where the capture does not show it.
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
        if limit is not None and floor > likely * (1 + ERROR):
            doubts.append(f"slow start alone takes {time_text(floor)}, which the cost of a limit leaves out")
        if limit is None:
            likely = max(likely, floor)
        low, high = min(low, likely) * (1 - ERROR), max(high, likely, min(floor, life.total_ns)) * (1 + ERROR)
        low = max(low, min(floor, likely))
        if changes.loss_share is not None:
            low, high = min(low, likely * (1 - LOSS_ERROR)), max(high, likely * (1 + LOSS_ERROR))
        if doubts:
            low, high = min(low, likely / WIDE), max(high, likely * WIDE)
        is_wide = high > likely * WIDE * (1 + ERROR) or low * WIDE * (1 + ERROR) < likely
        return self._worded(changes, Range(likely, low, high), binds, doubts, is_wide=is_wide)

    def _lifted(self, life: Life, limit: str) -> tuple[float, float, float, str]:
        """One limit alone, as the verdict has it."""
        carrying_ns = life.times_ns.get(limit, 0) - life.silent_ns.get(limit, 0)
        if not life.carried.path_bps and carrying_ns > ERROR * life.total_ns:
            raise WhatIfError(self._unknown_path)
        gain = life.gain(limit)
        total = life.total_ns
        after = live(life, self.path, Changes(lifted=(limit,)), choices(self.path, life, Changes())[0])
        return total - gain.likely_ns, total - gain.high_ns, total - gain.low_ns, _binding(after)

    def _changed(self, life: Life, changes: Changes) -> tuple[float, float, float, str, list[str]]:
        """Any changes together."""
        lives = [live(life, self.path, changes, numbers) for numbers in choices(self.path, life, changes)]
        first = lives[0]
        if first.is_open:
            raise WhatIfError(self._unknown_path)
        is_window = changes.rmem_max_bytes is not None or changes.adv_win_scale is not None
        if is_window and not life.carried.window_bytes:
            raise WhatIfError(
                f"connection {self.connection.id}: its receive window is not known, as the window scale is missing; "
                "--window-scale says it"
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
        """The least that slow start takes for the bytes, from the first flight on, after the handshake."""
        rtt = changes.round_trip_ns or self.life.carried.round_trip_ns
        flight, sent, rounds = max(self.life.carried.first_flight_bytes, 1448), 0, 0
        while sent < self.life.carried.bytes:
            sent, flight, rounds = sent + flight, 2 * flight, rounds + 1
        if "congestion_control" in changes.lifted:
            rounds = 1
        handshake = self.life.times_ns.get("handshake", 0) * rtt / self.life.carried.round_trip_ns
        return float(rounds * rtt + handshake)

    def _doubts(self, life: Life, changes: Changes) -> list[str]:
        """What may make it otherwise than the model has it."""
        doubts = []
        lifted = [limit for limit in changes.lifted if life.times_ns.get(limit)]
        for limit in lifted:
            if limit in SELF_PACED:
                doubts.append("what the application would do without its own pace is not in the capture")
            if limit == "path_policer":
                doubts.append("what the path carries behind a policer is not in the capture")
        if changes.rmem_max_bytes is not None:
            end, seen = self.path.receiver, life.carried.window_bytes
            own = end.sizes("tcp_rmem")
            models = memory_models(end.kernel, adv_win_scale=end.adv_win_scale)
            allowed = 0 if own is None else min(model.window_from_space(own[2]) for model in models)
            if seen and seen < REACHED * allowed and "receiver_window" in life.times_ns:
                doubts.append(
                    "the window stayed below what tcp_rmem allows already: the program set its buffer, or the transfer "
                    "was too short for it to grow"
                )
        if changes.wmem_max_bytes is not None and self.path.send_buffer_bytes.value is None:
            doubts.append("what the send buffer allows now is not known: give a snapshot of the sender (--with)")
        if changes.wmem_max_bytes is not None and changes.wmem_max_bytes < 2 * OVERSHOT_BYTES:
            doubts.append("a send buffer this small is overshot by a whole segment before it is cut")
        if "path_rate" in changes.lifted and 0 < life.times_ns.get("path_rate", 0) < FULL_SHARE * life.total_ns:
            doubts.append("beside the path something else took much of the time, which a faster path may meet sooner")
        if self.verdict.limit == "path_loss" and set(changes.lifted) & {*BY_PATH, "congestion_control"}:
            doubts.append("losses may be a policer's or other traffic's, and then other things gain")
        if self._may_be_own_pace(life) and (lifted or changes.rmem_max_bytes or changes.wmem_max_bytes):
            doubts.append("the rate taken for the path's may be the sender's own pace: it was never filled")
        if self.verdict.confidence == "possible":
            doubts.append("what limited it is itself only possible")
        if changes.algorithm is not None:
            doubts.append("how another congestion control shares the path with other traffic is not in the capture")
        return doubts

    def _may_be_own_pace(self, life: Life) -> bool:
        """Whether the plateau may be the pace of a sender that paces at what its window allows, as BBR does."""
        carried, algorithm = life.carried, self.path.algorithm
        if not carried.path_bps or "path_rate" in life.times_ns or (algorithm is not None and not algorithm.is_bbr):
            return False
        return bool(carried.path_bps < OWN_PACE * carried.window_bytes * 8e9 / carried.round_trip_ns)

    def _worded(self, changes: Changes, duration: Range, binds: str, doubts: list[str], *, is_wide: bool) -> Prediction:
        life = self.life
        before_bps = self.data.goodput_bps or life.carried.bytes * 8e9 / life.total_ns
        idle_ns = max(life.total_ns - life.carried.bytes * 8e9 / before_bps, 0.0)
        goodput = Range(*(self._goodput(ns, idle_ns) for ns in (duration.likely, duration.high, duration.low)))
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
        """Of the data while it lasted: what went before it and after it stays."""
        return float(self.life.carried.bytes) * 8e9 / max(duration_ns - idle_ns, duration_ns / 10, 1.0)


def _binding(after: Lived) -> str:
    """The limit with most time."""
    times = {limit: ns for limit, ns in after.times_ns.items() if limit not in ("none", "handshake")}
    return max(times, key=lambda limit: times[limit], default="none")
