"""`tcpwin lab build`: the lab's kernel, once."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tcpwin.cli.lab_kernels import SERIES
from tcpwin.units import bytes_text, share_text


@click.command()
@click.option(
    "--kernel", "series", type=click.Choice(SERIES), default=SERIES[0], show_default=True, help="Which Linux."
)
@click.option("--source", type=click.Path(path_type=Path), metavar="FILE", help="A linux-source .deb or tar at hand.")
@click.option("--again", is_flag=True, help="Build although it is there.")
@click.option("--needs", "only_needs", is_flag=True, help="Only say what it needs.")
def build(series: str, source: Path | None, again: bool, only_needs: bool) -> None:
    """Build a kernel of the lab: Debian's linux-source as a program that runs as any user.

    It is kept in $XDG_CACHE_HOME/tcpwin (~/.cache/tcpwin).
    """
    from tcpwin.lab import build as build_kernel
    from tcpwin.lab import build_needs, kernel_path

    path = kernel_path(series)
    if path.is_file() and not again and not only_needs:
        click.echo(f"{path} is there already")
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
