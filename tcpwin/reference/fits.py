"""The runs of the library that show a transfer as it is, with its limit lifted, and as good as its path gets.

In: a measured transfer. Out: Fits, with the distances of each run, or the reason why there is none. A run is matched by
cause: the same limit, about the same round trip, and about the same window, loss or path. Its throughput then says
whether the transfer's is usual for that cause. Only an application's pace is both cause and result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

from tcpwin.limits import LIMIT_NAMES
from tcpwin.paths import PAYLOAD_SHARE
from tcpwin.reference.library import BRIEF, FULL, MEMORY, START, LabRun, library, round_trips
from tcpwin.reference.measured import Measured
from tcpwin.reference.pace import OSCILLATING
from tcpwin.units import bytes_text, rate_text, share_text, time_text

NEAR_RTT, NEAR_CAUSE, NEAR_VOLUME, NEAR_LOSS = 2.0, 1.5, 3.0, 2.5
"""Largest ratios between a transfer and a run: round trip; window, pace or rate; size; share of lost segments."""
USUAL = 1.5
"""Largest ratio of both throughputs; beyond it the run would mislead: something else is at work, or chance."""
FASTEST_PATH_BPS = 1e9 * PAYLOAD_SHARE
"""Payload rate of the library's fastest path. Nothing is known about what a faster one would change."""
LEAST_BYTES = 100_000
"""Smaller transfers say nothing about the path."""
LONG_RTTS = 25.0
"""Slow start matters little to transfers that take as many round trips at the rate of their path."""

AS_YOU_ARE, ONE_CHANGE, BEST = "as you are", "one change better", "as good as the path gets"
OTHER_KERNEL = "on the other kernel"
PATH_RATE = "path_rate"
_OF_THE_PATH = (PATH_RATE, "congestion_control")
_USUAL_ALGORITHM = "cubic"


class Distance(NamedTuple):
    """One property on both sides, as text, and the doublings between them."""

    name: str
    yours: str
    run: str
    doublings: float


@dataclass(frozen=True, slots=True)
class Fit:
    """One run that fits.

    Attributes:
        role: `AS_YOU_ARE`, `ONE_CHANGE`, `BEST`, or `OTHER_KERNEL`, a run of `AS_YOU_ARE` on a kernel with the other
            handling of full receive queues.
        distances: what it has in common with the transfer.
        text: one sentence with both results.
    """

    role: str
    run: LabRun
    distances: tuple[Distance, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Fits:
    """The library's runs for one transfer.

    Attributes:
        found: the runs, in the order of the roles; no run occurs twice.
        text: the results in one sentence; None without runs.
        why_not: why no run shows the transfer as it is; None if one does.
        heads, cells: yours next to the runs as a table: the columns' names, and rows of a name and one value for each.
    """

    found: tuple[Fit, ...]
    text: str | None
    why_not: str | None
    heads: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()

    def run(self, role: str) -> LabRun | None:
        """Return the run of a role, or None."""
        return next((each.run for each in self.found if each.role == role), None)


class _Cause(NamedTuple):
    """What decides the throughput under one limit.

    Attributes:
        name: its name in a table.
        yours, run: its value on both sides; None if unknown.
        text: writes a value.
        most: largest ratio of both.
        power, rtt_power: exponents of the cause and of the round trip in the throughput.
    """

    name: str
    yours: Callable[[Measured], float | None]
    run: Callable[[LabRun], float | None]
    text: Callable[[float], str]
    most: float = NEAR_CAUSE
    power: float = 1.0
    rtt_power: float = 0.0


def _in_window(measured: Measured) -> float | None:
    """Return the mean flight that a window allowed, of which a small window keeps a part: it holds whole segments."""
    flight_bytes, window_bytes = measured.flight_mean_bytes, measured.window_mean_bytes
    return min(flight_bytes, window_bytes) if flight_bytes and window_bytes else window_bytes


def _flight(run: LabRun) -> float:
    return run.trace.mean(run.trace.flight_bytes)


def _goodput(measured: Measured) -> float | None:
    return measured.goodput_bps


def _path_rate(measured: Measured) -> float | None:
    return measured.path_rate_bps


def _got(measured: Measured) -> float | None:
    """Return the rate that the path gave: a part of a link that others share, too."""
    rate_bps, goodput_bps = measured.path_rate_bps, measured.goodput_bps
    return min(rate_bps, goodput_bps) if rate_bps and goodput_bps else rate_bps


def _is_long(measured: Measured) -> bool:
    """Whether slow start matters little."""
    rate_bps = _carried(measured.path_rate_bps or 0.0)
    return rate_bps > 0 and round_trips(measured.volume_bytes, rate_bps, measured.rtt_ns or 1) >= LONG_RTTS


def _share_text(share: float) -> str:
    return share_text(share, places=2)


def _path_payload(run: LabRun) -> float:
    return run.path_rate_bps * PAYLOAD_SHARE


_SHARED = _Cause("rate that the path gave", _got, lambda run: run.goodput_bps, rate_text)
"""The cause of a transfer that fills its path for so long that slow start matters little."""
_CAUSES = {
    "receiver_window": _Cause("mean flight", _in_window, _flight, bytes_text, rtt_power=-1),
    "send_buffer": _Cause("mean flight", lambda m: m.flight_mean_bytes, _flight, bytes_text, rtt_power=-1),
    "path_loss": _Cause(
        name="segments lost at random",
        yours=lambda m: m.loss_share,
        run=lambda run: run.loss_share,
        text=_share_text,
        most=NEAR_LOSS,
        power=-0.5,
        rtt_power=-1,
    ),
    PATH_RATE: _Cause("rate of the path", _path_rate, _path_payload, rate_text),
    "path_policer": _Cause("rate of the policer", _path_rate, lambda run: run.policer_bps, rate_text),
    "receiver_application": _Cause("pace of the reader", _goodput, lambda run: run.goodput_bps, rate_text),
    "sender_application": _Cause("pace of the sender", _goodput, lambda run: run.goodput_bps, rate_text),
    "congestion_control": _Cause(
        name="size",
        yours=lambda m: m.volume_bytes,
        run=lambda run: run.volume_bytes,
        text=bytes_text,
        most=NEAR_VOLUME,
        rtt_power=-1,
    ),
    "receiver_memory": _Cause("rate of the path", _path_rate, _path_payload, rate_text, NEAR_LOSS),
}
"""The cause of the throughput under each limit. A link's rate counts as the payload that it can carry."""


def find_fits(measured: Measured) -> Fits:
    """Return the runs of the library that fit a transfer."""
    if why_not := _unfit(measured):
        return Fits((), None, why_not)
    as_you_are, why_not = _as_you_are(measured)
    best = _best(measured)
    change = _one_change(measured, best)
    found = [each for each in (as_you_are, change, best) if each is not None]
    if (other := _other_kernel(measured, as_you_are)) is not None:
        found.insert(1, other)
    shown: list[Fit] = []
    for each in found:
        if all(each.run is not before.run for before in shown):
            shown.append(each)
    if not shown:
        return Fits((), None, why_not)
    heads = ("", "yours", *(each.role for each in shown))
    return Fits(tuple(shown), _sum_up(measured, shown), why_not, heads, tuple(_cells(measured, shown)))


def _unfit(measured: Measured) -> str | None:
    """Return why no run of the library can be compared, or None."""
    if not measured.rtt_ns or not measured.goodput_bps:
        return "The round trip or the throughput is unknown, so no run of the lab can be compared."
    if measured.volume_bytes < LEAST_BYTES:
        return f"The lab's runs are bulk transfers; this one carried {bytes_text(measured.volume_bytes)}."
    if measured.limit == "capture":
        return "The limit is unknown, so no run of the lab can be chosen by it."
    return None


def _as_you_are(measured: Measured) -> tuple[Fit | None, str | None]:
    """Return the run with the same cause, or why there is none."""
    named = LIMIT_NAMES[measured.limit]
    is_long = measured.limit in (PATH_RATE, "path_policer") and _is_long(measured)
    cause = _SHARED if is_long else _CAUSES.get(measured.limit)
    if cause is None:
        return None, f"The lab's runs do not include this limit ({named})."
    yours = cause.yours(measured)
    if not yours:
        return None, f"The capture does not show the {cause.name}, by which a run is chosen."
    if measured.limit == PATH_RATE and yours > FASTEST_PATH_BPS * cause.most:
        return None, f"The lab's paths carry up to {rate_text(FASTEST_PATH_BPS)}; this one {rate_text(yours)}."
    rows = []
    for run in library().values():
        theirs = cause.run(run)
        if run.limit != measured.limit or not theirs or _ratio(yours, theirs) > cause.most:
            continue
        if _ratio(measured.rtt_ns or 1, run.rtt_ns) > NEAR_RTT or (is_long and run.length_rtts < LONG_RTTS):
            continue
        if measured.limit == "path_loss" and _is_bbr(measured.algorithm) is not _is_bbr(run.algorithm):
            continue
        rtt, cause_apart = log2((measured.rtt_ns or 1) / run.rtt_ns), log2(yours / theirs)
        result = abs(cause.power * cause_apart + cause.rtt_power * rtt)
        apart = _path_apart(measured, run)
        if measured.limit in _OF_THE_PATH:
            apart += _length_apart(measured, run)
        rows.append((abs(rtt) + abs(cause_apart) + 2 * result + apart, run, theirs))
    if not rows:
        return None, f"The lab has no run with this limit ({named}) and about your round trip and {cause.name}."
    _, run, theirs = min(rows, key=lambda row: (row[0], row[1].name))
    if _ratio(measured.goodput_bps or 1.0, run.goodput_bps) > USUAL:
        return None, (
            f"The nearest run with this limit carried {rate_text(run.goodput_bps)}, yours "
            f"{rate_text(measured.goodput_bps or 0.0)}: too far apart to compare."
        )
    at = Distance(cause.name, cause.text(yours), cause.text(theirs), abs(log2(yours / theirs)))
    return _fit(AS_YOU_ARE, measured, run, [at]), None


def _is_bbr(algorithm: str | None) -> bool:
    """Whether a congestion control is BBR, which random losses do not slow down."""
    return algorithm is not None and algorithm.startswith("bbr")


def _path_apart(measured: Measured, run: LabRun) -> float:
    """Return a part of the distance for another path rate, congestion control, or shape of the reader's pace."""
    apart = 0.0
    if measured.path_rate_bps:
        apart += 0.1 * abs(log2(_carried(measured.path_rate_bps) / (_path_payload(run))))
    apart += (2.5 if measured.limit == "path_loss" else 1.0) * _algorithm_apart(measured, run)
    if (run.family == MEMORY) is not (measured.workload == OSCILLATING):
        apart += 1.0
    return apart


def _algorithm_apart(measured: Measured, run: LabRun) -> float:
    """Return a part of the distance for another congestion control; one that is not known is the usual one."""
    return 0.2 if run.algorithm != (measured.algorithm or _USUAL_ALGORITHM) else 0.0


def _length_apart(measured: Measured, run: LabRun) -> float:
    """Return the doublings between the numbers of round trips that both take at the rates of their paths."""
    if not measured.path_rate_bps:
        return 0.0
    yours = round_trips(measured.volume_bytes, _carried(measured.path_rate_bps), measured.rtt_ns or 1)
    return abs(log2(min(yours, LONG_RTTS) / min(run.length_rtts, LONG_RTTS)))


def _one_change(measured: Measured, best: Fit | None) -> Fit | None:
    """Return a run over such a path without the limit, with about the throughput that the limit's cost predicts.

    Where the capture does not show what the path carries, nobody knows that throughput.
    """
    if not measured.is_problem or not measured.cost_ns or measured.limit == PATH_RATE or not measured.path_rate_bps:
        return None
    left_ns = measured.duration_ns - measured.cost_ns
    if left_ns <= 0:
        return best
    then_bps = min(measured.volume_bytes * 8e9 / left_ns, _carried(measured.path_rate_bps))
    rows = [
        (
            _rtt_apart(measured, run)
            + 2 * abs(log2(then_bps / run.goodput_bps))
            + _length_apart(measured, run)
            + _algorithm_apart(measured, run),
            run,
        )
        for run in library().values()
        if run.limit != measured.limit
        and _is_over_such_a_path(measured, run)
        and _ratio(then_bps, run.goodput_bps) <= NEAR_CAUSE
    ]
    if not rows:
        return None
    _, run = min(rows, key=lambda row: (row[0], row[1].name))
    if run.goodput_bps <= (measured.goodput_bps or 0.0):
        return None
    if best is not None and run.goodput_bps > best.run.goodput_bps:
        return best
    name = "throughput without the limit"
    at = Distance(name, rate_text(then_bps), rate_text(run.goodput_bps), abs(log2(then_bps / run.goodput_bps)))
    return _fit(ONE_CHANGE, measured, run, [at])


def _is_over_such_a_path(measured: Measured, run: LabRun) -> bool:
    """Whether a run with room for everything has about the same path, and is as long unless both are long."""
    rtt_ns, rate_bps = measured.rtt_ns or 1, _carried(measured.path_rate_bps or 0.0)
    if _ratio(rtt_ns, run.rtt_ns) > NEAR_RTT:
        return False
    if run.family == START:
        # Its last round trip carries half of it, which the path must not slow down.
        is_unhindered = round_trips(run.volume_bytes // 2, rate_bps, rtt_ns) <= 1
        return is_unhindered and _ratio(measured.volume_bytes, run.volume_bytes) <= NEAR_VOLUME
    if run.family not in (FULL, BRIEF) or _ratio(rate_bps, _path_payload(run)) > NEAR_CAUSE:
        return False
    return 2 ** _length_apart(measured, run) <= NEAR_VOLUME


def _best(measured: Measured) -> Fit | None:
    """Return the run with room for everything over such a path, if its rate is known and is not the limit anyway."""
    if not measured.path_rate_bps or measured.limit == PATH_RATE:
        return None
    rate_bps = _carried(measured.path_rate_bps)
    rows = [
        (_rtt_apart(measured, run) + 2 * abs(log2(rate_bps / theirs)) + _length_apart(measured, run), run, theirs)
        for run in library().values()
        if run.family in (FULL, BRIEF)
        and run.algorithm == _USUAL_ALGORITHM
        and 2 ** _length_apart(measured, run) <= NEAR_VOLUME
        and _ratio(measured.rtt_ns or 1, run.rtt_ns) <= NEAR_RTT
        and _ratio(rate_bps, theirs := _path_payload(run)) <= NEAR_CAUSE
    ]
    if not rows:
        return None
    _, run, theirs = min(rows, key=lambda row: (row[0], row[1].name))
    if run.goodput_bps <= (measured.goodput_bps or 0.0):
        return None
    at = Distance(
        "rate of the path", rate_text(measured.path_rate_bps), rate_text(theirs), abs(log2(rate_bps / theirs))
    )
    return _fit(BEST, measured, run, [at])


def _other_kernel(measured: Measured, as_you_are: Fit | None) -> Fit | None:
    """Return the twin, on the other kernel, of a run whose receiver's memory or reader limits it."""
    if as_you_are is None or as_you_are.run.family != MEMORY:
        return None
    run = as_you_are.run
    name = run.name.rpartition("-")[0] + ("-stock" if run.is_patched else "-patched")
    twin = library().get(name)
    return None if twin is None else _fit(OTHER_KERNEL, measured, twin, [])


def _fit(role: str, measured: Measured, run: LabRun, others: Sequence[Distance]) -> Fit:
    rtt_ns = measured.rtt_ns or 1
    rtt = Distance("round trip", time_text(rtt_ns), time_text(run.rtt_ns), abs(log2(rtt_ns / run.rtt_ns)))
    return Fit(role, run, (rtt, *others), _says(role, run))


def _says(role: str, run: LabRun) -> str:
    """Return what a run shows, in one sentence."""
    kernel = f"Linux {run.kernel} {'with' if run.is_patched else 'without'} the collapse patch"
    begin = {
        AS_YOU_ARE: "A run with the same limit",
        ONE_CHANGE: "A run without this limit",
        BEST: f"A path of {rate_text(run.path_rate_bps)} with room for everything",
        OTHER_KERNEL: f"The same run on {kernel}",
    }[role]
    return f"{begin} carried {result_words(run)} over {time_text(run.rtt_ns)}; its limit: {LIMIT_NAMES[run.limit]}."


def _cells(measured: Measured, found: Sequence[Fit]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: results first, then what the run was matched by, then its settings."""
    runs = [each.run for each in found]
    yield ("run", "", *(run.full_name for run in runs))
    yield ("throughput", rate_text(measured.goodput_bps or 0.0), *(result_words(run) for run in runs))
    yield ("limited by", LIMIT_NAMES[measured.limit], *(LIMIT_NAMES[run.limit] for run in runs))
    yield ("round trip", time_text(measured.rtt_ns or 0), *(time_text(run.rtt_ns) for run in runs))
    matched = {each.name for fit in found for each in fit.distances} - {"round trip"}
    for name in sorted(matched):
        sides = [{each.name: each for each in fit.distances}.get(name) for fit in found]
        yours = next(each.yours for each in sides if each is not None)
        yield (name, yours, *("" if each is None else each.run for each in sides))
    yield ("path", "", *(path_words(run) for run in runs))
    yield ("buffers", "", *(buffer_words(run) for run in runs))
    yield ("sender", measured.algorithm or "", *(run.algorithm for run in runs))
    yield ("kernel", measured.kernel or "", *(kernel_words(run) for run in runs))


def result_words(run: LabRun) -> str:
    """Return the throughput, with the range of several runs."""
    carried = rate_text(run.goodput_bps)
    if run.goodput_low_bps == run.goodput_high_bps:
        return carried
    return f"{carried} ({rate_text(run.goodput_low_bps)} to {rate_text(run.goodput_high_bps)})"


def path_words(run: LabRun) -> str:
    """Return rate, queue, loss and policer of a run's path."""
    parts = [rate_text(run.path_rate_bps)]
    if run.queue_bytes is not None:
        parts.append(f"queue {bytes_text(run.queue_bytes)}")
    if run.loss_share is not None:
        parts.append(f"loss {share_text(run.loss_share, places=3)}")
    if run.policer_bps is not None:
        parts.append(f"policer {rate_text(run.policer_bps)}")
    return ", ".join(parts)


def buffer_words(run: LabRun) -> str:
    """Return the maximum sizes of both buffers of a run."""
    scale = "" if run.adv_win_scale is None else f" at {run.adv_win_scale:+d}"
    return f"receive {bytes_text(run.rmem_max_bytes)}{scale}, send {bytes_text(run.wmem_max_bytes)}"


def kernel_words(run: LabRun) -> str:
    """Return the kernel of a run, and whether it has the patch."""
    return f"Linux {run.kernel}" + (", collapse patch" if run.is_patched else "")


def _sum_up(measured: Measured, found: Sequence[Fit]) -> str:
    """Return all results in two sentences."""
    which = {AS_YOU_ARE: "like it", ONE_CHANGE: "without its limit", BEST: "with room for everything"}
    results = [(which[each.role], rate_text(each.run.goodput_bps)) for each in found if each.role in which]
    (first, carried), *others = results
    words = [f"a run {first} carried {carried}", *(f"one {each} {rate}" for each, rate in others)]
    listed = f"{', '.join(words[:-1])} and {words[-1]}" if others else words[0]
    return f"This transfer carried {rate_text(measured.goodput_bps or 0.0)}. In the lab, {listed}."


def _rtt_apart(measured: Measured, run: LabRun) -> float:
    return abs(log2((measured.rtt_ns or 1) / run.rtt_ns))


def _carried(rate_bps: float) -> float:
    """Return a path's payload rate, at most that of the library's fastest path."""
    return min(rate_bps, FASTEST_PATH_BPS)


def _ratio(one: float, other: float) -> float:
    return max(one / other, other / one)
