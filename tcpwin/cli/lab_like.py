"""`tcpwin lab run --like`: a scenario from a capture, and the run beside it and beside the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli.inputs import check_connection
from tcpwin.cli.options import CaptureOptions

if TYPE_CHECKING:
    from tcpwin.lab import Scenario
    from tcpwin.limits import Analysis
    from tcpwin.reference import Measured, Prediction, Run


@dataclass(frozen=True, slots=True)
class Tried:
    """A scenario that was made like a connection.

    Attributes:
        captured: the connection.
        prediction: of the run, where it has other settings.
        series: which Linux it runs on.
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
    """Print the run beside the capture and the prediction."""
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
        raise click.UsageError(f"there is no run {name[:80]!r}: write it as lab-bulk-300ms/512m2-stock")
    return run
