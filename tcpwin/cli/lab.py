"""`tcpwin lab`: the reference lab; runs and workloads are in separate files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli import completion
from tcpwin.cli.lazy_group import LazyGroup
from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.output import open_whole
from tcpwin.units import bytes_text, share_text

if TYPE_CHECKING:
    from tcpwin.lab import LiftResult, Scenario

SUBCOMMANDS = {
    "build": "Build the lab's kernel, once.",
    "drive": "Connect to a workload and read from it.",
    "library": "Run the grid of transfers that captures are compared with.",
    "lift": "Run a scenario with each limit lifted: what does each cost?",
    "list": "List the scenarios that come with tcpwin.",
    "run": "Run scenarios, each to a bundle.",
    "serve": "Wait for a workload's reader and send to it.",
    "show": "Show a scenario and what it changes.",
    "worlds": "Draw scenarios from a seed, and lift the limits of each.",
}
"""Each subcommand's one-line help."""
_OBJECTS = {"list": "list_"}

_HOMES = {"library": "lab_library", "run": "lab_run", "serve": "lab_workloads", "drive": "lab_workloads"}


class _Group(LazyGroup):
    subcommands = SUBCOMMANDS
    objects = _OBJECTS
    homes = _HOMES


@click.group(cls=_Group)
def lab() -> None:
    """Run published experiments: on two hosts, or in a real Linux kernel with virtual time."""


SERIES = ("6.1", "6.12", "7.3")


def check_set(wanted: str | None, found: Iterable[Scenario]) -> None:
    """Reject a set without scenarios."""
    sets = sorted({name for each in found for name in each.sets})
    if wanted is not None and wanted not in sets:
        raise click.UsageError(f"unknown set {wanted}: choose one of {', '.join(sets)}")


def chosen(names: Sequence[str], wanted: str | None, *, every: bool) -> list[Scenario]:
    """Return the scenarios of these names and of a set, or all of them, without repeats."""
    from tcpwin.lab import scenarios

    found = [find(name) for name in names]
    if wanted is not None or every:
        known = list(scenarios())
        check_set(wanted, known)
        found += [each for each in known if (every or wanted in each.sets) and each.name not in names]
    return found


def find(name: str) -> Scenario:
    """Return a scenario by name or path, or that of a run of the library: ``library/window-200ms-1.5mbps``."""
    from tcpwin.lab import ScenarioError, find_scenario, library

    of, _, run = name.partition("/")
    if of != "library":
        return find_scenario(name)
    planned = library().get(run)
    if planned is None:
        import difflib

        near = difflib.get_close_matches(run, list(library()), 3, 0.5)
        hint = f": did you mean {', '.join(near)}" if near else ""
        raise ScenarioError(f"the library has no run {run[:80]!r}{hint}")
    return planned.scenario()


@click.command("list")
@click.option("--set", "wanted", metavar="NAME", shell_complete=completion.sets, help="Only the scenarios of this set.")
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
def list_(wanted: str | None, as_json: bool) -> None:
    """List the scenarios that come with tcpwin, by set."""
    from tcpwin.lab import scenarios

    found = list(scenarios())
    check_set(wanted, found)
    found = [each for each in found if wanted is None or wanted in each.sets]
    if as_json:
        import json

        rows = [
            {
                "name": each.name,
                "title": each.title,
                "sets": list(each.sets),
                "kernels": list(each.kernels),
                "workload": each.workload.name,
                "source": each.source,
            }
            for each in found
        ]
        click.echo(json.dumps({"schema": "tcpwin/lab-list/1", "scenarios": rows}, indent=1))
        return
    width = max(len(each.name) for each in found)
    for name in sorted({each.sets[0] for each in found}):
        click.echo(f"{name}:")
        for each in found:
            if each.sets[0] == name:
                kernels = "" if each.kernels == ("stock",) else f" ({', '.join(each.kernels)})"
                click.echo(f"  {each.name:<{width}}  {each.title}{kernels}")


@click.command()
@click.argument("name", metavar="SCENARIO", shell_complete=completion.scenarios)
@click.option("--steps", is_flag=True, help="Also list each change that makes its network.")
def show(name: str, steps: bool) -> None:
    """Show a scenario: its file, which can be copied and changed, and the setup of its network.

    SCENARIO is a name from `tcpwin lab list`, the path of a file, or a run that `tcpwin reference --like` names.
    """
    from tcpwin.lab import plan

    scenario = find(name)
    click.echo(scenario.text, nl=False)
    if steps:
        for kernel in scenario.kernels:
            click.echo(f"\n{kernel}:")
            for step in plan(scenario, kernel):
                click.echo(f"  {step.text}")


@click.command()
@click.option("--seed", type=click.IntRange(1), required=True, help="Random seed: the same seed draws the same worlds.")
@click.option("--count", type=click.IntRange(1), required=True, metavar="N", help="Number of worlds.")
@click.option("--from", "first", type=click.IntRange(0), default=0, show_default=True, help="Number of the first.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="Folder for everything."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Number of worlds to run at once.")
@click.option("--only-draw", is_flag=True, help="Only write the scenarios.")
@click.option(
    "--family", type=click.Choice(["transfers", "conversations"]), default="transfers", show_default=True, help="Which."
)
def worlds(seed: int, count: int, first: int, output: Path, jobs: int, only_draw: bool, family: str) -> int:
    """Draw worlds from a seed, and run each unchanged and with each limit lifted alone.

    FOLDER gets worlds.jsonl (one line for each world: its parameters, the duration of each run), scenarios/, bundles/
    with the packets of the unchanged runs, and lifts/. Existing results are not repeated: an interrupted sweep
    continues.

    Exit status 1: a world could not be run.
    """
    from tcpwin.lab import FAMILIES, check_kernel, sweep

    numbers = range(first, first + count)
    if only_draw:
        (output / "scenarios").mkdir(parents=True, exist_ok=True)
        for number in numbers:
            scenario = FAMILIES[family].draw(seed, number)
            with open_whole(output / "scenarios" / f"{scenario.name}.toml") as file:
                file.write(scenario.text)
        return 0
    check_kernel()
    failed = sweep(seed, numbers, output, family=family, jobs=jobs, say=lambda text: click.echo(text, err=True))
    return EXIT_PROBLEM if failed else 0


@click.command()
@click.argument("name", metavar="SCENARIO", shell_complete=completion.scenarios)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=".", metavar="FOLDER", help="Folder for the bundles."
)
@click.option("--kernel", type=click.Choice(["stock", "patched"]), help="Kernel to use; default: the scenario's first.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Number of runs at once.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
def lift(name: str, output: Path, kernel: str | None, jobs: int, as_json: bool) -> None:
    """Run a scenario unchanged, and once with each limit lifted alone, to measure what each gains.

    SCENARIO is a name from `tcpwin lab list`, or the path of a file. A run whose bundle is already in the folder
    is not repeated, so an interrupted call continues.
    """
    from tcpwin.lab import (
        check_kernel,
        check_liftable,
        lift_scenario,
        lifted,
        lifts_of,
        run_needs,
    )

    scenario = find(name)
    if kernel is not None and kernel not in scenario.kernels:
        raise click.UsageError(f"{scenario.name} does not run on the {kernel} kernel")
    check_liftable(scenario)
    check_kernel()
    which = kernel or scenario.kernels[0]
    every = [scenario, *(lifted(scenario, each) for each in lifts_of(scenario))]
    runs, done = len(every), 0
    click.echo(f"without existing bundles: {run_needs((each, which) for each in every)}", err=True)

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
    delays = "" if base.delays_ns is None else f"; its messages took {base.delays_ns / 1e9:.3f} s in total"
    taken = f"{base.completion_ns / 1e9:.3f} s to the last byte read"
    click.echo(f"{result.scenario.name} ({result.kernel}): {taken}{delays}")
    width = max(len(each.lift.name) for each in result.gains)
    click.echo(f"  {'lifted alone':<{width}}  {'takes':>10}  {'gains':>10}")
    for each in sorted(result.gains, key=lambda each: -each.gain_ns):
        # Round first: a gain that rounds to zero has no sign.
        gain_s, percent = round(each.gain_ns / 1e9, 3) or 0.0, round(100 * each.gain_share) or 0
        seconds = f"{each.times.completion_ns / 1e9:>8.3f} s  {gain_s:>8.3f} s"
        title = each.lift.title
        if each.times.delays_ns is not None:
            title += f" (messages {each.times.delays_ns / 1e9:.3f} s)"
        click.echo(f"  {each.lift.name:<{width}}  {seconds}  {percent:>4} %  {title}")
    click.echo(f"limit: {', '.join(result.alike)}")


@click.command()
@click.option(
    "--kernel", "series", type=click.Choice(SERIES), default=SERIES[0], show_default=True, help="Which Linux."
)
@click.option("--source", type=click.Path(path_type=Path), metavar="FILE", help="A local linux-source .deb or tar.")
@click.option("--again", is_flag=True, help="Build even if it exists.")
@click.option("--needs", "only_needs", is_flag=True, help="Only print the requirements.")
def build(series: str, source: Path | None, again: bool, only_needs: bool) -> None:
    """Build a kernel for the lab: Debian's linux-source as a program that runs as any user.

    It is stored in $XDG_CACHE_HOME/tcpwin (~/.cache/tcpwin).
    """
    from tcpwin.lab import build as build_kernel
    from tcpwin.lab import build_needs, kernel_path

    path = kernel_path(series)
    if path.is_file() and not again and not only_needs:
        click.echo(f"{path} already exists")
        return
    click.echo(str(build_needs(source, series)))
    if only_needs:
        return
    shows = sys.stderr.isatty()
    last = ""

    def say(what: str, share: float | None) -> None:
        nonlocal last
        if shows:
            click.echo(f"\r\x1b[K{what}" + ("" if share is None else f" {share_text(share)}"), nl=False, err=True)
        elif what != last:
            click.echo(what)
        last = what

    try:
        built = build_kernel(say, source, series)
    finally:
        if shows:
            click.echo("", err=True)
    click.echo(f"{built} ({bytes_text(built.stat().st_size)})")
