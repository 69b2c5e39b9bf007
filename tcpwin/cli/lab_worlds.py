"""`tcpwin lab worlds`: many drawn scenarios with what each limit costs."""

from __future__ import annotations

from pathlib import Path

import click

from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.output import open_whole


@click.command()
@click.option("--seed", type=click.IntRange(1), required=True, help="Of the draw: the same seed, the same worlds.")
@click.option("--count", type=click.IntRange(1), required=True, metavar="N", help="How many worlds.")
@click.option("--from", "first", type=click.IntRange(0), default=0, show_default=True, help="Number of the first.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="For all of it.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many worlds at once.")
@click.option("--only-draw", is_flag=True, help="Write the scenarios, run nothing.")
def worlds(seed: int, count: int, first: int, output: Path, jobs: int, only_draw: bool) -> int:
    """Draw worlds by a seed, and run each as it is and with each limit alone lifted.

    FOLDER gets worlds.jsonl (one line a world: what was drawn, how long each run took), scenarios/, bundles/ with the
    packets of the runs as they are, and lifts/. What is there is not run again: a sweep that was ended goes on.

    Exit status 1: a world could not be run.
    """
    from tcpwin.lab import check_kernel, sweep, world

    numbers = range(first, first + count)
    if only_draw:
        (output / "scenarios").mkdir(parents=True, exist_ok=True)
        for number in numbers:
            scenario = world(seed, number)
            with open_whole(output / "scenarios" / f"{scenario.name}.toml") as file:
                file.write(scenario.text)
        return 0
    check_kernel()
    failed = sweep(seed, numbers, output, jobs=jobs, say=lambda text: click.echo(text, err=True))
    return EXIT_PROBLEM if failed else 0
