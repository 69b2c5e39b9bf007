"""Test a change on a twin: a run like a connection, then the same run with the change.

In: a connection of an analysis, changes. Out: Twin. It predicts only if the first run behaved like the connection; the
effect of a change is the difference between the runs. It is a separate package because runs in the lab's kernel import
`tcpwin.lab` and must not load numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin.lab.behaviour import Behaviour, behaviour_of, behaviour_rows, score
from tcpwin.lab.lift import read_times
from tcpwin.lab.like import is_own_pace, scenario_like, series_like, series_of
from tcpwin.lab.run import run_scenario
from tcpwin.lab.scenario import Scenario, ScenarioError
from tcpwin.limits import LIMIT_NAMES, analyze, life_of
from tcpwin.paths import Changes, Range, fit_path
from tcpwin.reference import Measured, against, measure_connection
from tcpwin.units import rate_text, time_text

if TYPE_CHECKING:
    from tcpwin.limits import Analysis, Connection

ERROR = 0.1
"""Relative error of a duration: two runs of one transfer differ by this much."""
LOSS_ERROR = 0.25
"""Relative error with random losses, which differ in each run."""
FASTER = 1.1
"""Multiple of the captured throughput beyond which an assumed path rate decides."""
FILLED_SHARE = 0.02
"""Share of the life: if the path was full for less, its rate may come from bursts."""
ASSUMED = "the capture does not show what the path carries, and the run's was assumed: give it with --rate"
"""Doubt about an assumed path rate."""


@dataclass(frozen=True, slots=True)
class TwinRun:
    """One run: its scenario, its bundle, its duration by the reader's clock, and its capture's measurements."""

    scenario: Scenario
    bundle: Path
    completion_ns: int
    measured: Measured
    behaviour: Behaviour


@dataclass(frozen=True, slots=True)
class Twin:
    """A connection, a run like it, and the run with a change.

    Attributes:
        changes: the changes in the second run.
        series: the Linux of both runs.
        captured: the connection; `before_ns` is its duration, `behaviour` its behaviour.
        changed: the run with the changes; None without changes, or if it is not a twin.
        is_twin: whether the unchanged run came within 15 % of the captured throughput, with the same limit.
        duration_ns, goodput_bps: predictions; None if it is not a twin, or without changes.
        doubts: reasons for doubt, one sentence each.
    """

    changes: Changes
    series: str
    captured: Measured
    before_ns: int
    behaviour: Behaviour
    as_it_was: TwinRun
    changed: TwinRun | None
    is_twin: bool
    duration_ns: Range | None
    goodput_bps: Range | None
    doubts: tuple[str, ...]

    @property
    def confidence(self) -> str:
        """Return ``likely``, or ``possible`` with doubts."""
        return "possible" if self.doubts else "likely"

    @property
    def score(self) -> float:
        """Return the unchanged run's similarity to the connection, from 0 to 1."""
        return score(self.behaviour, self.as_it_was.behaviour)

    @property
    def rows(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return rows with a name, and texts for the connection, its twin and the changed twin."""
        runs = [each for each in (self.as_it_was, self.changed) if each is not None]
        limits = (each.limit for each in (self.captured, *(run.measured for run in runs)))
        return [
            *behaviour_rows([self.behaviour, *(each.behaviour for each in runs)]),
            ("limited by", tuple(LIMIT_NAMES[each] for each in limits)),
        ]

    @property
    def change(self) -> str:
        """Describe the change: `with receiver.tcp_rmem=64M, without slow reader`."""
        lifts = [f"without {LIMIT_NAMES[each]}" for each in self.changes.lifted]
        settings = [each for each in self.changes.words if not each.startswith("lift ")]
        return ", ".join([f"with {', '.join(settings)}", *lifts] if settings else lifts)

    @property
    def text(self) -> str:
        """Return the result in a sentence or two."""
        first = self.as_it_was.measured
        came = (
            f"The unchanged run reached {_rate(first.goodput_bps)}, {first.limited_by}; the capture reached "
            f"{_rate(self.captured.goodput_bps)}, {self.captured.limited_by}"
        )
        if not self.is_twin:
            return f"{came}: it is not a twin and predicts nothing."
        if self.changed is None or self.duration_ns is None or self.goodput_bps is None:
            return f"{came}: it is a twin."
        return (
            f"{came}: it is a twin. {self.change[:1].upper()}{self.change[1:]} it takes "
            f"{time_text(self.duration_ns.likely)} instead of {time_text(self.before_ns)}, "
            f"{_rate(self.goodput_bps.likely)}; then limited by {LIMIT_NAMES[self.changed.measured.limit]} "
            f"({self.confidence})."
        )


def run_twin(
    analysis: Analysis,
    connection: Connection,
    changes: Changes,
    folder: Path,
    *,
    name: str = "capture",
    rate_mbps: float | None = None,
    series: str | None = None,
    tick: Callable[[str, int], None] = lambda name, elapsed_ns: None,  # noqa: ARG005
) -> Twin:
    """Run a connection's twin unchanged and, if it behaves like the connection, with the changes.

    Runs whose bundles exist are not repeated.

    Args:
        changes: result of `read_changes`; if empty, only the first run is made.
        name: the capture's name, for the scenarios.
        rate_mbps: the path's rate, if the capture does not show it.
        series: the Linux of both runs; by default the one that counts receive memory like the receiver's.
        tick: called with a run's name and its virtual time in nanoseconds.

    Raises:
        ScenarioError: as for `scenario_like`.
        UmlError: the lab's kernel is not built, or ended without a result.
        NetworkError: a run failed.
    """
    series = series or series_like(connection)
    scenarios = twin_scenarios(analysis, connection, changes, name=name, rate_mbps=rate_mbps, series=series)
    captured = measure_connection(connection)
    if captured is None:
        raise ScenarioError(f"connection {connection.id} carried no data")
    folder.mkdir(parents=True, exist_ok=True)
    first = _run(scenarios[0], series, folder, tick)
    behaviour = behaviour_of(connection, captured)
    is_twin = bool(against(captured, first.measured).is_twin)
    # A run that is not a twin says nothing about a change.
    then = _run(scenarios[1], series, folder, tick) if is_twin and len(scenarios) > 1 else None
    duration = goodput = None
    doubts: tuple[str, ...] = ()
    if then is not None and then.measured.goodput_bps:
        doubts = tuple(_doubts(connection, captured, then, changes, series, is_given=rate_mbps is not None))
        # The second run is likely to have the first run's error too.
        change = then.completion_ns / first.completion_ns
        error = max(ERROR, abs((first.measured.goodput_bps or 0) / (captured.goodput_bps or 1) - 1))
        if changes.loss_share or "loss_percent" in then.scenario.text:
            error = max(error, LOSS_ERROR)
        duration = _spread(connection.duration_ns * change, error)
        goodput = _spread((captured.goodput_bps or 0) / change, error)
        if ASSUMED in doubts:
            # If the path carries no more than was seen, nothing is gained.
            duration = replace(duration, high=max(duration.high, float(connection.duration_ns)))
            goodput = replace(goodput, low=min(goodput.low, captured.goodput_bps or 0))
    return Twin(
        changes, series, captured, connection.duration_ns, behaviour, first, then, is_twin, duration, goodput, doubts
    )


def twin_scenarios(
    analysis: Analysis,
    connection: Connection,
    changes: Changes,
    *,
    name: str = "capture",
    rate_mbps: float | None = None,
    series: str | None = None,
) -> list[Scenario]:
    """Return the scenarios of `run_twin`: a transfer like the connection, and the same with any changes.

    Raises:
        ScenarioError: as for `scenario_like`.
    """
    make = partial(scenario_like, analysis, name=name, rate_mbps=rate_mbps, connection=connection, series=series)
    return [make()] if changes.is_empty else [make(), make(changes=changes)]


def _run(scenario: Scenario, series: str, folder: Path, tick: Callable[[str, int], None]) -> TwinRun:
    bundle = run_scenario(
        scenario, "stock", folder, series=series, tick=lambda elapsed_ns: tick(scenario.name, elapsed_ns)
    ).bundle
    worst = analyze(str(bundle), capture="sender.pcap.gz").worst(1)
    measured = measure_connection(worst[0]) if worst else None
    if measured is None:
        raise ScenarioError(f"{scenario.name}: the run carried no data")
    times = read_times(bundle, scenario)
    return TwinRun(scenario, bundle, times.completion_ns, measured, behaviour_of(worst[0], measured))


def _doubts(
    connection: Connection, captured: Measured, then: TwinRun, changes: Changes, series: str, *, is_given: bool
) -> list[str]:
    """Return doubts: path properties that the change needs but the capture lacks, and a Linux unlike the receiver's."""
    path = fit_path(connection, captured.direction)
    assert path is not None, "it carried data"
    data = connection.a_to_b if path.direction == "a_to_b" else connection.b_to_a
    life = life_of(connection, path.direction)
    is_faster = (then.measured.goodput_bps or 0) > FASTER * (captured.goodput_bps or 0)
    is_told = is_given or changes.rate_bps is not None
    is_filled = life.times_ns.get("path_rate", 0) >= FILLED_SHARE * life.total_ns
    doubts = []
    fitting = series_of(path)
    if series != fitting and path.receiver.kernel is not None:
        doubts.append(f"it ran on Linux {series}, and {fitting} counts receive memory as the receiver's does")
    elif series != fitting:
        doubts.append(f"it ran on Linux {series}, and the receiver's Linux is unknown")
    if is_faster and not is_told and (path.rate_bps.value is None or is_own_pace(path, data, life)):
        doubts.append(ASSUMED)
    elif is_faster and not is_told and not is_filled and then.measured.limit == "path_rate":
        doubts.append("the path was never full: the rate that its bursts show may be the sender's own pace")
    if life.times_ns.get("path_policer", 0) > FILLED_SHARE * life.total_ns:
        doubts.append("the capture does not show the size of the policer's bucket")
    if changes.algorithm is not None and path.loss_kind is None and path.loss_share.value:
        doubts.append("the cause of the losses is unknown: the run's path has none")
    return doubts


def _spread(likely: float, error: float) -> Range:
    return Range(likely, likely / (1 + error), likely * (1 + error))


def _rate(bps: float | None) -> str:
    return "no throughput" if bps is None else rate_text(bps)


def describe_twin(twin: Twin) -> Mapping[str, Any]:
    """Return the twin as an object of a JSON document."""
    return {
        "kernel": twin.series,
        "is_twin": twin.is_twin,
        "score": twin.score,
        "captured_bps": twin.captured.goodput_bps,
        "captured": {"limit": twin.captured.limit, **_described_behaviour(twin.behaviour)},
        "as_it_was": _described(twin.as_it_was),
        "changed": None if twin.changed is None else _described(twin.changed),
        "duration_ns": None if twin.duration_ns is None else asdict(twin.duration_ns),
        "goodput_bps": None if twin.goodput_bps is None else asdict(twin.goodput_bps),
        "confidence": twin.confidence,
        "change": twin.change,
        "doubts": list(twin.doubts),
        "text": twin.text,
    }


def _described(run: TwinRun) -> Mapping[str, Any]:
    return {
        "bundle": str(run.bundle),
        "completion_ns": run.completion_ns,
        "limit": run.measured.limit,
        **_described_behaviour(run.behaviour),
    }


def _described_behaviour(behaviour: Behaviour) -> Mapping[str, Any]:
    told = asdict(behaviour)
    curve = {name: list(told.pop(name)) for name in ("time_ns", "sum_bytes")}
    return {**told, "curve": curve}
