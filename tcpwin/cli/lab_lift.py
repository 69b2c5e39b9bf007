"""`tcpwin lab lift`: what each limit of a scenario costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli import completion

if TYPE_CHECKING:
    from tcpwin.lab import LiftResult


@click.command()
@click.argument("name", metavar="SCENARIO", shell_complete=completion.scenarios)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=".", metavar="FOLDER", help="For the bundles.")
@click.option("--kernel", type=click.Choice(["stock", "patched"]), help="On this one of its kernels; its first.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many runs at once.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
def lift(name: str, output: Path, kernel: str | None, jobs: int, as_json: bool) -> None:
    """Run a scenario as it is, and once more with each limit alone lifted: what does each gain?

    SCENARIO is a name that `tcpwin lab list` lists, or the path of a file. A run whose bundle is in the folder already
    is not repeated, so that an interrupted call goes on.
    """
    from tcpwin.lab import (
        check_kernel,
        check_liftable,
        find_scenario,
        lift_scenario,
        lifted,
        lifts_of,
        run_needs,
    )

    scenario = find_scenario(name)
    if kernel is not None and kernel not in scenario.kernels:
        raise click.UsageError(f"{scenario.name} does not run on the {kernel} kernel")
    check_liftable(scenario)
    check_kernel()
    which = kernel or scenario.kernels[0]
    every = [scenario, *(lifted(scenario, each) for each in lifts_of(scenario))]
    runs, done = len(every), 0
    click.echo(f"without those that are there: {run_needs((each, which) for each in every)}", err=True)

    def say(run: str) -> None:
        nonlocal done
        done += 1
        click.echo(f"{done} of {runs} runs: {run}", err=True)

    result = lift_scenario(scenario, which, output, jobs=jobs, say=say)
    if as_json:
        import json

        click.echo(json.dumps(result.document(), indent=1))
    else:
        _show(result)
    sys.stdout.flush()


def _show(result: LiftResult) -> None:
    base = result.base
    delays = "" if base.delays_ns is None else f"; its messages took {base.delays_ns / 1e9:.3f} s together"
    taken = f"{base.completion_ns / 1e9:.3f} s to the last byte read"
    click.echo(f"{result.scenario.name} ({result.kernel}): {taken}{delays}")
    width = max(len(each.lift.name) for each in result.gains)
    click.echo(f"  {'lifted alone':<{width}}  {'takes':>10}  {'gains':>10}")
    for each in sorted(result.gains, key=lambda each: -each.gain_ns):
        # Rounded first: a gain that rounds to nothing has no sign.
        gain_s, percent = round(each.gain_ns / 1e9, 3) or 0.0, round(100 * each.gain_share) or 0
        seconds = f"{each.times.completion_ns / 1e9:>8.3f} s  {gain_s:>8.3f} s"
        title = each.lift.title
        if each.times.delays_ns is not None:
            title += f" (messages {each.times.delays_ns / 1e9:.3f} s)"
        click.echo(f"  {each.lift.name:<{width}}  {seconds}  {percent:>4} %  {title}")
    click.echo(f"limit: {', '.join(result.alike)}")
