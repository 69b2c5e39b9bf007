"""`tcpwin whatif --twin`: the change tried in the lab's kernel, and what that says."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tcpwin.lab.twin import Twin
    from tcpwin.limits import Analysis, Connection
    from tcpwin.paths import Changes

_WIDTH = 120


def try_twin(
    analysis: Analysis, connection: Connection, changes: Changes, folder: Path, name: str, series: str | None
) -> Twin:
    """Run the twin, saying on the terminal how far it is."""
    from tcpwin.lab import check_kernel, series_like
    from tcpwin.lab.twin import run_twin

    series = series or series_like(connection)
    check_kernel(series)
    twin = run_twin(analysis, connection, changes, folder, name=name, series=series, tick=_tick)
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    return twin


def _tick(name: str, elapsed_ns: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{name}: second {elapsed_ns / 1e9:.0f}", nl=False, err=True)


def render_twin(twin: Twin) -> Iterator[str]:
    """What the runs came to, and what follows."""
    from tcpwin.units import rate_text, share_text, time_text

    yield ""
    yield f"by a twin in the lab's kernel, Linux {twin.series}"
    yield from _wrapped(twin.text)
    heads = ("captured", "twin", "with the change")[: len(twin.rows[0][1])]
    for name, cells in ((f"{share_text(twin.score)} alike", heads), *twin.rows):
        yield f"  {name:<29}" + "".join(f"{cell:<22}" for cell in cells).rstrip()
    if twin.duration_ns is not None and twin.goodput_bps is not None:
        duration, goodput = twin.duration_ns, twin.goodput_bps
        yield f"  duration    {time_text(duration.low)} to {time_text(duration.high)}"
        yield f"  throughput  {rate_text(goodput.low)} to {rate_text(goodput.high)}"
    for doubt in twin.doubts:
        yield from textwrap.wrap(f"{doubt}.", _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    for run in filter(None, (twin.as_it_was, twin.changed)):
        yield f"  {run.bundle}"


def _wrapped(text: str) -> Sequence[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
