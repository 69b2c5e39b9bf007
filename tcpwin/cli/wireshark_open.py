"""`tcpwin wireshark open`: what the plugin's menu starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from tcpwin.cli.inputs import ConnectionNumber, check_connection
from tcpwin.cli.options import CaptureOptions
from tcpwin.errors import OutputError


@click.command("open")
@click.argument("index", type=click.Path(exists=True, dir_okay=False), metavar="INDEX")
@click.argument("connection", type=ConnectionNumber(), metavar="N")
def open_(index: str, connection: int) -> None:
    """Write a report on connection N of the capture that INDEX is of, and open it in the browser."""
    import webbrowser

    from tcpwin.render.report import Report
    from tcpwin.render.wireshark import read_indexed

    capture = read_indexed(Path(index))
    check_connection(connection, capture.connections)
    analysis = CaptureOptions().analyze((str(capture.path),), keep=True)
    check_connection(connection, len(analysis))
    page = Path(tempfile.mkdtemp(prefix="tcpwin-")) / f"connection-{connection}.html"
    Report(analysis, limit=1, chosen=(connection,)).write(page)
    click.echo(str(page))
    if not webbrowser.open(page.as_uri()):
        raise OutputError(f"no browser could be started: open {page}")
