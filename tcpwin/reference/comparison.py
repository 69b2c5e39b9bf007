"""Compare a transfer with sufficiently near references, and give a verdict in words.

In: a connection, or other measurements of a transfer. Out: Comparison, which gives a reason instead of a verdict if no
reference is near enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2

from tcpwin.kernel import SCALING_RATIO_SINCE, AdvWinScale, window_rate_bps
from tcpwin.limits import Connection, Verdict
from tcpwin.reference.fits import Fits, find_fits
from tcpwin.reference.measured import COUNTERS, WINDOW_LIMITS, Measured, measure_connection
from tcpwin.reference.model import RateRange, Run
from tcpwin.reference.nearness import Nearness, nearest
from tcpwin.reference.pace import MESSAGES, OSCILLATING
from tcpwin.reference.prediction import (
    Prediction,
    agreement,
    kernel_version,
    own_window,
    predict,
)
from tcpwin.reference.run_trace import trace
from tcpwin.units import binary_text, rate_text, share_text, time_text

NEAR_RTT = 1.5
NEAR_RATE = 2.0
"""Maximum ratio between the rates of two paths; beyond it, a run's result does not apply."""
UNKNOWN_RATE = 4.0
"""If the path's rate is unknown, runs on paths faster than this multiple of the carried rate are not shown."""
LOST_SHARE = 0.0005
"""Share of randomly lost segments above which no reference applies, because none has loss; less costs little."""
FASTER = 1.25
"""Multiple of a rate that counts as much faster."""
KEPT = 0.5
"""Minimum share of its best second; a run with a slower loop lost its rate and is not a model."""
QUEUE = COUNTERS[:4]
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity as text: yours, the nearest run's, the best run's; None if unknown or not stated."""

    name: str
    yours: str | None
    reference: str | None
    best: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A transfer compared with references.

    Attributes:
        measured: the transfer; None if the connection has no data.
        nearest: runs that are near enough, the nearest first, with similarities and differences.
        best: the one of these that shows what path and kernel can do, if rates are compared. The verdict names it.
        rows: yours next to the nearest run and `best`, which may be the same.
        traced: `best`, or the most similar run with window and flight over time (`trace`), for drawing.
        verdict: the verdict in words; None if no run is near enough.
        agreement: agreement between the memory model's window and the observed one, if both are known.
        prediction: predicted effect of `best`'s settings; None if no run is near enough, or the receive buffer is not
            the limit.
        why_not: why there is no verdict; None if there is one.
        lab: runs of the lab's library with the same cause, with one change and at the path's best; None if the
            connection has no data.
    """

    measured: Measured | None
    nearest: tuple[Nearness, ...]
    best: Run | None
    rows: tuple[Row, ...]
    traced: Run | None
    verdict: str | None
    agreement: str | None
    prediction: Prediction | None
    why_not: str | None
    lab: Fits | None = None

    @property
    def beside(self) -> tuple[Run, ...]:
        """Return the runs with a column in a table of `rows`: the nearest, and `best` if different."""
        nearest = tuple(each.run for each in self.nearest[:1])
        return nearest if self.best is None or self.best in nearest else (*nearest, self.best)

    @property
    def cells(self) -> tuple[tuple[str | None, ...], ...]:
        """Return `rows` as a table: the name, your value, then one cell per run of `beside`."""
        count = 2 + len(self.beside)
        return tuple((row.name, row.yours, row.reference, row.best)[:count] for row in self.rows)


def compare(
    connection: Connection, *, rate_bps: float | None = None, limit: int = 3, verdict: Verdict | None = None
) -> Comparison:
    """Compare a connection with the nearest references.

    A run is near enough if it has the same workload, a round trip within a factor of 1.5, and a path rate within a
    factor of 2 if the connection's is known, else at most four times what the connection carried. Kernel, settings and
    patch order the runs. No run is shown if the path loses segments randomly, or if the transfer was limited by
    something that no reference has.

    Args:
        rate_bps: the path's rate in bits per second; a capture shows it only if the transfer filled the path.
        limit: maximum runs in `nearest`.
        verdict: its verdict, if already known; otherwise all rules are applied.

    Raises:
        SourceError: the source changed, or could be read only once.
    """
    measured = measure_connection(connection, rate_bps=rate_bps, verdict=verdict)
    if measured is None:
        return _without(None, "the connection carried no data")
    return compare_measured(measured, limit=limit)


def compare_measured(measured: Measured, *, limit: int = 3) -> Comparison:
    """Compare a measured transfer with the nearest references, like `compare`."""
    return replace(_published(measured, limit), lab=find_fits(measured))


def _published(measured: Measured, limit: int) -> Comparison:
    """Compare with the published runs and the lab's repetitions of these."""
    if measured.workload is None:
        return _without(measured, f"no reference has its shape: {measured.shape}")
    if not measured.rtt_ns:
        return _without(measured, "its round trip is unknown")
    found = [each for each in _ordered(measured) if each.run.workload == measured.workload]
    if misled := _misled(measured):
        return _without(measured, misled)
    near = [each for each in found if _is_near(measured, each.run)]
    if not near:
        return _without(measured, _far(measured, [each.run for each in found]))
    shown = tuple(near[:limit])
    comparable = [each.run for each in near if reached_bps(each.run)] if measured.workload != MESSAGES else []
    comparable.sort(key=lambda run: _apart(measured, run))
    best = comparable[0] if comparable else None
    # Another receive buffer is predicted only where it is the limit; elsewhere the fix is another one.
    is_asked = measured.limit in WINDOW_LIMITS and not measured.is_reader_slow
    prediction = predict(measured, best) if best is not None and is_asked else None
    return Comparison(
        measured=measured,
        nearest=shown,
        best=best,
        rows=tuple(_rows(measured, shown[0].run, best)),
        traced=next((run for run in comparable if trace(run) is not None), None),
        verdict=_verdict(measured, [each.run for each in near], best),
        agreement=agreement(measured, own_window(measured)),
        prediction=prediction,
        why_not=None,
    )


def reached_bps(run: Run) -> float | None:
    """Return the highest rate that a run states for any second, or None."""
    rates = [each.most_bps for each in run.throughput] + [each.rate_bps for each in run.ramp]
    return max(rates, default=None)


def _apart(measured: Measured, run: Run) -> tuple[bool, bool, float, float]:
    """Return a sort key for how well a run shows the capability of this path and kernel: runs that state buffer and
    path come first, and among them those that kept their rate in every loop; then path, kernel and settings decide.
    """
    kept = min((each.most_bps for each in run.throughput), default=0.0) >= KEPT * (reached_bps(run) or 0.0)
    path = abs(log2((measured.rtt_ns or 1) / (run.rtt_ns or 1)))
    if measured.path_rate_bps and run.rate_bps:
        path += abs(log2(measured.path_rate_bps / run.rate_bps))
    version = kernel_version(measured.kernel)
    kernel = float(version is not None and version != kernel_version(run.kernel))
    kernel += bool(run.is_patched) is not bool(measured.is_patched)
    overhead = AdvWinScale(run.adv_win_scale or 0).overhead
    if measured.adv_win_scale is not None:
        apart = abs(log2(AdvWinScale(measured.adv_win_scale).overhead / overhead))
    else:
        apart = float(1 / overhead)
    return run.rmem_max_bytes is None or run.rate_bps is None, not kept, round(path, 1) + kernel, apart


def _ordered(measured: Measured) -> Sequence[Nearness]:
    kernel = kernel_version(measured.kernel)
    has_scale = kernel is None or kernel < SCALING_RATIO_SINCE
    return nearest(
        rtt_ns=measured.rtt_ns,
        rate_bps=measured.path_rate_bps,
        rmem_max_bytes=measured.rmem_max_bytes if measured.workload != MESSAGES else None,
        kernel=measured.kernel if kernel is not None else None,
        adv_win_scale=measured.adv_win_scale if has_scale and measured.workload != MESSAGES else None,
        is_patched=measured.is_patched,
        settings=measured.sender_settings,
        workload=measured.workload,
        limit=_ALL,
    )


def _misled(measured: Measured) -> str | None:
    """Return why every reference would mislead, or None."""
    if measured.loss_share > LOST_SHARE:
        share = share_text(measured.loss_share, places=2)
        return f"its path randomly loses {share} of the segments, and no reference's does"
    if measured.limit in ("path_loss", "path_policer"):
        return f"it was {measured.limited_by}, and no reference's path has that"
    kernel = kernel_version(measured.kernel)
    if measured.workload == OSCILLATING and kernel is not None and kernel >= SCALING_RATIO_SINCE:
        return (
            f"its receiver has Linux {measured.kernel}; the references of an oscillating reader are older than 6.6, "
            "which counts receive memory differently and collapses no queues here"
        )
    return None


def _is_near(measured: Measured, run: Run) -> bool:
    if run.rtt_ns is None or not measured.rtt_ns or _factor(measured.rtt_ns, run.rtt_ns) > NEAR_RTT:
        return False
    carried = max(measured.best_second_bps or 0.0, measured.goodput_bps or 0.0)
    rate = run.rate_bps or reached_bps(run)
    if rate is None:
        return measured.workload == MESSAGES
    if measured.path_rate_bps and run.rate_bps:
        return _factor(measured.path_rate_bps, rate) <= NEAR_RATE
    if measured.path_rate_bps:
        # The run's path carried at least the reached rate.
        return rate <= measured.path_rate_bps * NEAR_RATE
    return rate / UNKNOWN_RATE <= carried <= rate * NEAR_RATE


def _factor(one: float, other: float) -> float:
    return max(one / other, other / one)


def _far(measured: Measured, runs: Sequence[Run]) -> str:
    """Return why no run of the workload is near enough."""
    rtts = sorted({run.rtt_ns for run in runs if run.rtt_ns})
    rtt_ns = measured.rtt_ns or 0
    if not any(_factor(rtt_ns, each) <= NEAR_RTT for each in rtts):
        listed = ", ".join(time_text(each) for each in rtts) or "none"
        return f"references of this workload have round trips of {listed}; yours is {time_text(rtt_ns)}"
    rate = measured.path_rate_bps or measured.best_second_bps or measured.goodput_bps or 0.0
    rates = sorted({run.rate_bps for run in runs if run.rate_bps})
    listed = ", ".join(rate_text(each) for each in rates)
    which = "its path carries" if measured.path_rate_bps else "it carried"
    unknown = "" if measured.path_rate_bps else ", and its path's rate is unknown (give it with --rate)"
    return f"references over such a round trip have paths of {listed}; {which} {rate_text(rate)}{unknown}"


def _without(measured: Measured | None, why: str) -> Comparison:
    own = None if measured is None else agreement(measured, own_window(measured))
    return Comparison(
        measured, (), None, (), None, None, own, None, f"No published run is near enough to compare with: {why}."
    )


def _verdict(measured: Measured, near: Sequence[Run], best: Run | None) -> str:
    if measured.workload == MESSAGES:
        return _messages_verdict(measured, near)
    own = own_window(measured)
    yours = f"Yours reached {rate_text(measured.goodput_bps or 0.0)}"
    if measured.best_second_bps and measured.best_second_bps > 1.05 * (measured.goodput_bps or 0.0):
        yours += f" ({rate_text(measured.best_second_bps)} in its best second)"
    yours += f", {measured.limited_by}"
    if own is not None and measured.limit in WINDOW_LIMITS and not measured.is_reader_slow:
        yours += f": {own.words}"
    if best is None:
        return f"{yours}. The near references state no rate."
    reached = f"{run_words(best)} reached {loops_words(best)}"
    if measured.workload == OSCILLATING:
        reached += " in the fast seconds of its loops"
    elif (seen := trace(best)) is not None and seen.goodput_bps:
        reached += f" in its best second, {rate_text(seen.goodput_bps)} on average,"
    other = _other_words(measured, best)
    return f"{reached} over {time_text(best.rtt_ns or 0)}. {yours}.{other}{_queue_words(measured, near, best)}"


def _other_words(measured: Measured, best: Run) -> str:
    """Return a caveat if the run was much faster although no window limited yours, and none limited the run."""
    reached, own = reached_bps(best), measured.best_second_bps or measured.goodput_bps
    if measured.limit in WINDOW_LIMITS or not reached or not own or reached <= FASTER * own:
        return ""
    if best.window_bytes and best.rtt_ns and reached * FASTER >= window_rate_bps(best.window_bytes, best.rtt_ns):
        return ""
    return " The run shows what path and kernel can do: what limited yours did not limit it."


def _queue_words(measured: Measured, near: Sequence[Run], best: Run) -> str:
    """Describe what happened to the receiver's queue, and which settings avoid it."""
    suffered = [name for name in QUEUE if measured.counters.get(name)]
    if not suffered:
        return ""
    listed = ", ".join(f"{name.removeprefix('TcpExt')} {measured.counters[name]:,}" for name in suffered)
    like = [run for run in near if run.rtt_ns == best.rtt_ns and run.window_bytes == best.window_bytes]
    spared = [run for run in like if run.counters and not any(run.counters.get(name) for name in QUEUE)]
    if best in spared:
        return f" Its receive queue overflowed: {listed}; the reference's did not."
    same = next((run for run in spared if run.is_patched is measured.is_patched), None)
    if same is None:
        return f" Its receive queue overflowed: {listed}."
    return f" Its receive queue overflowed: {listed}; {run_words(same)} had none of that."


def _messages_verdict(measured: Measured, near: Sequence[Run]) -> str:
    parts = []
    for run in near:
        said = ", ".join(
            f"{name} {'' if each.bound == 'exact' else each.bound + ' '}{time_text(each.value_ns)}"
            for name, each in run.latencies.items()
        )
        switch = run.settings.get("net.ipv4.tcp_slow_start_after_idle")
        parts.append(f"{said} with tcp_slow_start_after_idle {switch}" if switch is not None else said)
    yours = f"p99 {time_text(measured.message_p99_ns or 0)}"
    switch = measured.sender_settings.get("net.ipv4.tcp_slow_start_after_idle")
    yours += f" with tcp_slow_start_after_idle {switch}" if switch is not None else ""
    cost = (
        f"; restarts after idle cost {time_text(measured.idle_restart_ns)} in total; setting it to 0 would avoid that"
        if measured.idle_restart_ns
        else "; no restart after idle cost it anything"
    )
    names = ", ".join(dict.fromkeys(run.reference for run in near))
    return f"{names}, messages over {time_text(near[0].rtt_ns or 0)}: {'; '.join(parts)}. Yours: {yours}{cost}."


def run_words(run: Run) -> str:
    """Return a run with its kernel and settings: ``lab-bulk-300ms/512m2-stock (Linux 6.1.192, 512 MiB at -2)``."""
    parts = [f"Linux {run.kernel}"] if run.kernel else []
    if run.is_patched:
        parts.append("with the collapse patch")
    if run.rmem_max_bytes is not None:
        scale = "" if run.adv_win_scale is None else f" at {run.adv_win_scale:+d}"
        window = "" if run.window_bytes is None else f" gives {binary_text(run.window_bytes)}"
        parts.append(f"{binary_text(run.rmem_max_bytes)}{scale}{window}")
    return f"{run.reference}/{run.name}" + (f" ({', '.join(parts)})" if parts else "")


def loops_words(run: Run) -> str:
    """Return a run's result: ``941 Mbit/s``, by loop if it has several."""
    loops = " / ".join(_range(each) for each in run.throughput)
    return f"{loops} Mbit/s" if loops else rate_text(reached_bps(run) or 0.0)


def _range(rates: RateRange) -> str:
    least, most = (f"{each / 1e6:g}" for each in (rates.least_bps, rates.most_bps))
    return least if least == most else f"{least} to {most}"


def _rows(measured: Measured, run: Run, best: Run | None) -> list[Row]:
    yours, theirs, bests = _yours(measured), _run_cells(run), {} if best is None else _run_cells(best)
    rows = (Row(name, cell, theirs.get(name), bests.get(name)) for name, cell in yours.items())
    return [row for row in rows if row.yours is not None or row.reference is not None or row.best is not None]


def _yours(measured: Measured) -> dict[str, str | None]:
    """Return every quantity in order."""
    own = own_window(measured)
    oscillates = measured.workload == OSCILLATING
    cells = {
        "round trip": _time(measured.rtt_ns),
        "rate of the path": _rate(measured.path_rate_bps),
        "kernel of the receiver": measured.kernel,
        "collapse patch": _yes(measured.is_patched),
        "largest receive buffer": _size(measured.rmem_max_bytes),
        "tcp_adv_win_scale": _signed(measured.adv_win_scale),
        "window by the settings": _size(None if own is None else own.window_bytes),
        "largest window seen": _size(measured.window_max_bytes),
        "mean window": _size(measured.window_mean_bytes),
        "most in flight": _size(measured.flight_max_bytes),
        "mean in flight": _size(measured.flight_mean_bytes),
        # References of a pausing reader state only its fast seconds, which are not comparable with a mean.
        **({"mean throughput": _rate(measured.goodput_bps), "fast seconds, by loop": None} if oscillates else {}),
        **({} if oscillates else {"throughput": _rate(measured.goodput_bps)}),
        "best second": _rate(measured.best_second_bps),
        "window closed": _time(measured.zero_window_ns),
        "stalls": _stalls(measured),
        **({"message delay, p99": _time(measured.message_p99_ns)} if measured.workload == MESSAGES else {}),
    }
    return cells | {name: _count(measured.counters.get(name)) for name in COUNTERS}


def _run_cells(run: Run) -> dict[str, str | None]:
    reached = loops_words(run) if reached_bps(run) else None
    p99 = run.latencies.get("p99")
    seen = trace(run)
    cells = {
        "round trip": _time(run.rtt_ns),
        "rate of the path": _rate(run.rate_bps),
        "kernel of the receiver": run.kernel,
        "collapse patch": _yes(run.is_patched),
        "largest receive buffer": _size(run.rmem_max_bytes),
        "tcp_adv_win_scale": _signed(run.adv_win_scale),
        "window by the settings": _size(run.window_bytes),
        "largest window seen": None if seen is None else _size(max(seen.window_bytes)),
        "mean window": None if seen is None else _size(seen.mean(seen.window_bytes)),
        "most in flight": None if seen is None else _size(max(seen.flight_bytes)),
        "mean in flight": None if seen is None else _size(seen.mean(seen.flight_bytes)),
        "mean throughput": None if seen is None else _rate(seen.goodput_bps),
        "fast seconds, by loop": reached,
        "throughput": reached,
        "message delay, p99": None if p99 is None else _time(p99.value_ns),
    }
    return cells | {name: _count(run.counters.get(name)) for name in COUNTERS}


def _time(ns: int | None) -> str | None:
    return None if ns is None else time_text(ns) if ns else "0"


def _rate(bps: float | None) -> str | None:
    return None if bps is None else rate_text(bps)


def _size(count: float | None) -> str | None:
    return None if count is None else binary_text(count)


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _signed(value: int | None) -> str | None:
    return None if value is None else f"{value:+d}"


def _stalls(measured: Measured) -> str | None:
    if measured.stall_count is None:
        return None
    return f"{measured.stall_count:,}, {time_text(measured.stall_ns or 0)}" if measured.stall_count else "none"


def _count(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"
