"""`tcpwin lab run`: scenarios, each into a bundle; with --like, a run made from a capture and compared with it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli import completion
from tcpwin.cli.io import ConnectionNumber, check_connection, complain
from tcpwin.cli.lab import SERIES, chosen
from tcpwin.cli.options import SELECTION, CaptureOptions, WithSnapshots, capture_options
from tcpwin.cli.program import EXIT_PROBLEM

if TYPE_CHECKING:
    from tcpwin.lab import Outcome, Scenario
    from tcpwin.limits import Analysis
    from tcpwin.reference import Measured, Prediction, Run


@click.command(cls=WithSnapshots)
@click.argument("names", nargs=-1, metavar="[SCENARIO...]", shell_complete=completion.scenarios)
@click.option(
    "--set",
    "wanted",
    metavar="NAME",
    shell_complete=completion.sets,
    help="All scenarios of a set (`tcpwin lab list`).",
)
@click.option("--all", "every", is_flag=True, help="Every scenario that comes with tcpwin.")
@click.option(
    "--kernel",
    type=click.Choice(
        [
            "stock",
            "patched",
            *(f"{series}{which}" for series in SERIES for which in ("", "-stock", "-patched")),
        ]
    ),
    help="stock, patched or a Linux series; default: 6.1, or with --like the one that fits the receiver.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=".", metavar="FOLDER", help="Folder for the bundles."
)
@click.option("--engine", type=click.Choice(["uml", "netns"]), default="uml", show_default=True)
@click.option("--no-capture", is_flag=True, help="Record no packets, only samples, counters and logs.")
@click.option("--again", is_flag=True, help="Run even if the bundle exists.")
@click.option("--yes", is_flag=True, help="With --engine netns: do not ask.")
@click.option(
    "--like",
    metavar="CAPTURE",
    shell_complete=completion.files,
    help="Instead, run a transfer over the path of this capture's worst connection.",
)
@click.option(
    "--connection", type=ConnectionNumber(), metavar="N", help="With --like: the connection; default: the worst."
)
@click.option(
    "--as", "as_run", metavar="RUN", help="With --like: use the receiver's settings in this run of a reference."
)
@click.option("--capture", "member", metavar="NAME", help="With --like: the capture of a bundle.")
@click.option("--rate", "rate_mbps", type=click.FloatRange(0.001), metavar="MBPS", help="With --like: the path's rate.")
@capture_options("window_scales", *SELECTION)
@click.option("--with", "snapshots", multiple=True, metavar="FILE...", help="With --like: sysctl and ss of its hosts.")
def run(
    names: tuple[str, ...],
    wanted: str | None,
    every: bool,
    kernel: str | None,
    output: Path,
    engine: str,
    no_capture: bool,
    again: bool,
    yes: bool,
    like: str | None,
    connection: int | None,
    as_run: str | None,
    rate_mbps: float | None,
    options: CaptureOptions,
) -> int:
    """Run scenarios and write a bundle of each: SCENARIO-stock.zip, SCENARIO-patched.zip.

    An existing bundle of the same scenario and kernel is kept, so an interrupted set continues. Exit status 1: a run
    did not meet its scenario's expectations, or one of several gave no result.

    With --kernel 7.3, the bundle is SCENARIO-7.3-stock.zip, and only the scenario's expectations for 7.3 apply: the
    published results are for kernels before 6.6. The same holds for 6.12.

    With --engine uml a run happens in the lab's own kernel, as any user. With --engine netns it happens in three
    network namespaces of this host, as root: the changes to the host are printed first, and undone at the end.

    With --like CAPTURE the run is compared with the connection that it imitates: the capture, the prediction of the
    receive-memory model, and the run's kernel. --as lab-bulk-300ms/512m2-stock uses that run's settings.
    """
    from tcpwin.lab import (
        DEFAULT_SERIES,
        NetworkError,
        UmlError,
        check_engine,
        check_kernel,
        find_outcome,
        run_needs,
        run_scenario,
    )

    scenarios = chosen(names, wanted, every=every)
    wanted_series, only = _which_kernel(kernel)
    tried: Tried | None = None
    if like is not None:
        tried = read_tried(
            like, options, connection=connection, as_run=as_run, rate_mbps=rate_mbps, series=wanted_series
        )
        scenarios.append(tried.scenario)
    elif options.snapshots or rate_mbps or as_run or options.member or connection is not None:
        raise click.UsageError("--with, --connection, --as, --capture and --rate go with --like")
    if not scenarios:
        raise click.UsageError("name a scenario, or --set, or --all; `tcpwin lab list` lists them")
    if wanted_series is not None and engine != "uml":
        raise click.UsageError(f"--engine netns runs on this host's own kernel: {wanted_series} goes with --engine uml")
    series = wanted_series or (DEFAULT_SERIES if tried is None else tried.series)
    runs = [(each, which) for each in scenarios for which in each.kernels if only in (None, which)]
    if not runs:
        raise click.UsageError(f"none of these runs on the {kernel} kernel")
    missing = [
        each
        for each in runs
        if again or find_outcome(*each, output, series=series, engine=engine, capture=not no_capture) is None
    ]
    check_engine(engine)
    if missing and engine == "netns":
        _announce(missing, yes)
    elif missing:
        check_kernel(series)
        there = len(runs) - len(missing)
        present = f"{there} of {len(runs)} already exist; " if there else ""
        click.echo(f"{present}{run_needs(missing, capture=not no_capture)}", err=True)
    output.mkdir(parents=True, exist_ok=True)
    held = True
    for scenario, which in runs:
        tick = _Progress(scenario, which)
        try:
            outcome = run_scenario(
                scenario,
                which,
                output,
                series=series,
                engine=engine,
                capture=not no_capture,
                again=again,
                tick=tick,
            )
        except (NetworkError, UmlError) as error:
            if len(runs) == 1:
                raise
            complain(str(error))
            held = False
            continue
        _report(outcome)
        if tried is not None and scenario is tried.scenario and not no_capture:
            report_tried(tried, outcome.bundle)
        held = held and all(is_held for _, is_held, _ in outcome.claims)
    return 0 if held else EXIT_PROBLEM


def _which_kernel(kernel: str | None) -> tuple[str | None, str | None]:
    """Return the requested Linux series, and which of stock and patched; None for either if not given."""
    if kernel is None or kernel in ("stock", "patched"):
        return None, kernel
    series, _, only = kernel.partition("-")
    return series, only or None


def _announce(runs: list[tuple[Scenario, str]], yes: bool) -> None:
    """Show the changes that the run will make to this host as root."""
    from tcpwin.lab import plan

    for scenario, kernel in runs:
        click.echo(f"{scenario.name} ({kernel}) will do this on this host, and remove it afterwards:", err=True)
        for step in plan(scenario, kernel):
            click.echo(f"  {step.text}", err=True)
    if not yes:
        click.confirm("Go on?", abort=True, err=True)


class _Progress:
    """Progress of the run's own clock, on a terminal."""

    def __init__(self, scenario: Scenario, kernel: str) -> None:
        self._label = f"{scenario.name} ({kernel})"
        self._shows = sys.stderr.isatty()
        self._began = time.monotonic()

    def __call__(self, elapsed_ns: int) -> None:
        if self._shows:
            spent = time.monotonic() - self._began
            click.echo(f"\r\x1b[K{self._label}: second {elapsed_ns / 1e9:.0f}, after {spent:.0f} s", nl=False, err=True)


def _report(outcome: Outcome) -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    how = "was there" if outcome.elapsed_s is None else f"{outcome.elapsed_s:.0f} s"
    failed = [(claim, value) for claim, is_held, value in outcome.claims if not is_held]
    count = len(outcome.claims)
    verdict = f"{count - len(failed)} of {count} as expected" if count else "nothing expected"
    click.echo(f"{outcome.bundle}: {verdict} ({how})")
    if outcome.truth["hosts"]["sender"]["capture"] and outcome.elapsed_s is not None:
        click.echo(f"  tcpwin analyze {outcome.bundle} --capture sender.pcap.gz")
    for claim, value in failed:
        complain(f"{outcome.bundle.stem}: expected {claim.text}, found {'nothing' if value is None else f'{value:g}'}")


@dataclass(frozen=True, slots=True)
class Tried:
    """A scenario made like a connection.

    Attributes:
        captured: the connection.
        prediction: the prediction for the run, if it has other settings.
        series: the Linux series it runs on.
    """

    scenario: Scenario
    captured: Measured
    prediction: Prediction | None
    series: str


def read_tried(
    capture: str,
    options: CaptureOptions,
    *,
    connection: int | None,
    as_run: str | None,
    rate_mbps: float | None,
    series: str | None,
) -> Tried:
    """Read the capture, and make the scenario and the prediction."""
    from tcpwin.lab import ScenarioError, scenario_like, series_like
    from tcpwin.reference import measure_connection, predict

    run = None if as_run is None else _find(as_run)
    analysis = options.analyze((capture,), keep=True)
    check_connection(connection, len(analysis))
    if not len(analysis):
        raise ScenarioError("the capture has no TCP connection")
    chosen = analysis.worst(1)[0] if connection is None else analysis.connections[connection]
    name = Path(capture).name.partition(".")[0]
    series = series or series_like(chosen)
    scenario = scenario_like(
        analysis, name=name, rate_mbps=rate_mbps, connection=chosen, settings_of=run, series=series
    )
    route = scenario.route
    rate = min(route.rate_mbps, route.bottleneck_mbps or route.rate_mbps)
    captured = measure_connection(chosen, rate_bps=rate * 1e6)
    if captured is None:
        raise ScenarioError(f"connection {chosen.id} carried no data")
    prediction = None if run is None else predict(captured, run)
    return Tried(scenario, captured, prediction, series)


def report_tried(tried: Tried, bundle: Path) -> None:
    """Print the run next to the capture and the prediction."""
    from tcpwin.limits import analyze
    from tcpwin.reference import against, measure_connection
    from tcpwin.render import render_against

    analysis: Analysis = analyze(str(bundle), capture="sender.pcap.gz")
    run = measure_connection(analysis.worst(1)[0]) if len(analysis) else None
    if run is None:
        click.echo("  the run carried no data")
        return
    if tried.prediction is not None and tried.prediction.goodput_bps is None:
        click.echo(f"  {tried.prediction.text}")
    for line in render_against(against(tried.captured, run, tried.prediction)):
        click.echo(line)


def _find(name: str) -> Run:
    from tcpwin.reference import references

    wanted, _, run_name = name.partition("/")
    found = references().get(wanted)
    run = None if found is None else next((run for run in found.runs if run.name == run_name), None)
    if run is None:
        raise click.UsageError(f"unknown run {name[:80]!r}: write it as lab-bulk-300ms/512m2-stock")
    return run
