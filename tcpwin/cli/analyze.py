"""`tcpwin analyze`: the main job in the terminal."""

from __future__ import annotations

import sys

import click

from tcpwin.cli.inputs import ConnectionNumber, check_connection
from tcpwin.cli.program import EXIT_PROBLEM, complain
from tcpwin.cli.selection_options import selection_options
from tcpwin.cli.snapshot_options import WithSnapshots, measure, snapshot_options
from tcpwin.cli.terminal import colour_option, show


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@snapshot_options
@selection_options
@click.option("--json", "as_json", is_flag=True, help="Write the whole analysis as JSON; see `tcpwin fields`.")
@click.option(
    "--limit",
    default=10,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=0),
    help="Number of connections to show.",
)
@click.option(
    "--connection",
    type=ConnectionNumber(),
    metavar="N",
    help="Show connection N in full; with --json, also its events.",
)
@click.option("--check", is_flag=True, help="Exit with 1 if a connection has a problem.")
@colour_option
def analyze(
    captures: tuple[str, ...],
    snapshots: tuple[str, ...],
    clock_offset: int | None,
    member: str | None,
    as_json: bool,
    limit: int,
    connection: int | None,
    check: bool,
    colour: str,
) -> int:
    """Show what limited each connection, what that cost and what to change: the worst connections first.

    FILE is a pcap or pcapng capture, plain or compressed (gzip, zstd, lz4). Several are merged by time; - reads
    standard input. A folder, .zip or .tar.gz is a bundle: a capture and the snapshots of its hosts.
    """
    from tcpwin.report import render_blocks, render_connection

    follow = None if connection is None else [connection]
    analysis = measure(captures, snapshots, clock_offset=clock_offset, member=member, follow=follow)
    check_connection(connection, len(analysis))
    if as_json:
        analysis.write_json(sys.stdout, connection=connection, events=connection is not None)
    elif connection is not None:
        show([render_connection(analysis.connections[connection]).splitlines()], colour)
    else:
        show(render_blocks(analysis, limit=limit), colour)
    if not as_json:
        for each in analysis.findings.failed:
            complain(f"warning: {each}")
    if not check:
        return 0
    is_problem = analysis.connections[connection].verdict.is_problem if connection is not None else analysis.problems
    return EXIT_PROBLEM if is_problem else 0
