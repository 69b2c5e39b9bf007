"""`tcpwin lab library`: make the runs that captures are compared with."""

from __future__ import annotations

from pathlib import Path

import click

from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.units import count_text


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File for the runs, one line of JSON each."
)
@click.option(
    "--family", "wanted", metavar="NAME", multiple=True, help="Only the runs of this family; may be repeated."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Number of runs at once.")
@click.option("--list", "only_list", is_flag=True, help="Only list the runs.")
def library(output: Path | None, wanted: tuple[str, ...], jobs: int, only_list: bool) -> int:
    """Run the grid of transfers that `tcpwin reference --like` compares captures with.

    Each run is one path with one limit: a buffer, losses, a slow application, a policer, or nothing but the path. FILE
    gets a line for each, with its settings, its verdict and its curves. Runs with a line are not repeated, so an
    interrupted call continues. In the end the lines are sorted, and runs that something else limited are left out.

    Exit status 1: a run gave no result.
    """
    from tcpwin.lab import check_kernel, families, finish_library, sweep_library
    from tcpwin.lab import library as planned

    if unknown := sorted(set(wanted) - set(families())):
        raise click.UsageError(f"unknown family {unknown[0][:80]!r}: choose from {', '.join(families())}")
    runs = [each for each in planned().values() if not wanted or each.family in wanted]
    if only_list:
        for each in runs:
            click.echo(f"library/{each.name}")
        return 0
    if output is None:
        raise click.UsageError("missing option -o FILE, or --list")
    check_kernel()
    failed = sweep_library(runs, output, jobs=jobs, say=lambda text: click.echo(text, err=True))
    if failed:
        click.echo(f"{count_text(failed, 'run')} gave no result: the same command tries again", err=True)
        return EXIT_PROBLEM
    left_out = finish_library(output)
    click.echo(f"{output}: {count_text(len(runs) - len(left_out), 'run')}")
    if left_out:
        click.echo(f"left out, limited by something else: {', '.join(left_out)}")
    return 0
