"""`tcpwin fleet run`: many captures into a data set."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tcpwin.cli.program import EXIT_UNREADABLE, complain

if TYPE_CHECKING:
    from tcpwin.fleet import Done, Outcome, Tell

TABLES = ("events", "series")


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="[SITE=]SOURCE...")
@click.option("-o", "--output", "dataset", required=True, metavar="DATASET", help="Folder of the data set.")
@click.option("--site", metavar="NAME", help="Site of the captures; default: the name of the folder each is in.")
@click.option(
    "--also",
    type=click.Choice(TABLES),
    multiple=True,
    help="Write this table as well, of the worst connections with a problem; may be repeated.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes; default: one a processor.")
@click.option("--scheduler", metavar="ADDRESS", help="Let a Dask cluster measure them: tcp://HOST:PORT.")
@click.option("--again", is_flag=True, help="Measure captures that are done, too.")
@click.option("--json", "as_json", is_flag=True, help="Write what was done as JSON.")
def run(
    sources: tuple[str, ...],
    dataset: str,
    site: str | None,
    also: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    again: bool,
    as_json: bool,
) -> int:
    """Measure every capture of SOURCE, and keep the results in a data set.

    SOURCE is a capture, a folder (all captures below it, each with the snapshots beside it), an archive, a quoted
    pattern such as 'captures/**/*.pcap', or an address (s3://, gs://, az://, https://). Captures that the data set has
    already are not read again, unless they have changed: run the same command again to go on, or with more sources to
    add to it.
    """
    from tcpwin.fleet import run as measure_all

    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers are processes of this machine; a cluster of --scheduler has its own")
    with _shown() as tell:
        done = measure_all(
            sources,
            dataset,
            site=site,
            also=also,
            workers=workers,
            scheduler=scheduler,
            again=again,
            tell=tell,
        )
    if as_json:
        click.echo(json.dumps(done.document(), indent=1))
    else:
        for name, error in done.failed.items():
            complain(error if name in error else f"{name}: {error}")
        click.echo("\n".join(_told(done)))
    return EXIT_UNREADABLE if done.failed else 0


def _told(done: Done) -> Iterator[str]:
    from tcpwin.units import bytes_text, count_text, time_text

    captures = count_text(done.captures, "capture")
    counts = f"{done.measured:,} measured, {done.unchanged:,} unchanged, {len(done.failed):,} not readable"
    yield f"{captures} in {done.dataset}: {counts}."
    if done.measured:
        took = time_text(done.elapsed_ns)
        carried = f"{count_text(done.packets, 'packet')} ({bytes_text(done.file_bytes)})"
        yield f"{carried}, {count_text(done.connections, 'connection')}, {done.problems:,} with a problem; in {took}."


@contextmanager
def _shown() -> Iterator[Tell | None]:
    """A bar on a terminal's stderr."""
    if not sys.stderr.isatty():
        yield None
        return
    bars: list[click._termui_impl.ProgressBar[int]] = []

    def tell(_: Outcome, __: int, count: int) -> None:
        if not bars:
            bars.append(click.progressbar(length=count, label="measuring captures", file=sys.stderr, show_pos=True))
            bars[0].render_progress()
        bars[0].update(1)

    try:
        yield tell
    finally:
        for bar in bars:
            bar.render_finish()
