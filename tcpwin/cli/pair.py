"""`tcpwin pair`: two captures of the same traffic, and the fate of each packet between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tcpwin.cli.io import (
    ConnectionNumber,
    check_connection,
    colour_option,
    complain,
    open_captures,
    show,
    spare_captures,
)
from tcpwin.cli.options import SELECTION, CaptureOptions, capture_options
from tcpwin.errors import SourceError, need

if TYPE_CHECKING:
    from tcpwin.pairing import Pairing
    from tcpwin.sources import Source


@click.command()
@capture_options(*SELECTION)
@click.argument("a", type=click.Path(allow_dash=True), metavar="A")
@click.argument("b", required=False, type=click.Path(allow_dash=True), metavar="[B]")
@click.option(
    "--capture-a",
    metavar="NAME",
    help="The capture to read from A, if A is a bundle with several.",
)
@click.option(
    "--capture-b",
    metavar="NAME",
    help="The same for B, or for A if there is no B.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the whole result as JSON.")
@click.option(
    "--packets",
    "out",
    type=click.Path(dir_okay=False),
    metavar="FILE.parquet",
    help="Write one row per packet: its connection and fate, frame and time in both captures, delay, numbers, why it "
    "was retransmitted.",
)
@click.option(
    "--limit", default=10, show_default=True, type=click.IntRange(min=0), metavar="N", help="Connections to show."
)
@click.option(
    "-o",
    "--output",
    "figure",
    type=click.Path(dir_okay=False),
    metavar="OUT",
    help="Write a report (.html), or draw one connection (.png, .svg, .pdf, .json).",
)
@click.option(
    "--connection",
    type=ConnectionNumber(),
    metavar="N",
    help="The only connection to show, draw or report; default: show those that lost most, draw the first of them.",
)
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True)
@colour_option
def pair(
    a: str,
    b: str | None,
    capture_a: str | None,
    capture_b: str | None,
    as_json: bool,
    out: str | None,
    limit: int,
    figure: str | None,
    connection: int | None,
    theme: str,
    colour: str,
    options: CaptureOptions,
) -> None:
    """Show where packets were lost between two captures of the same traffic.

    A and B were captured at two points, such as client and server. A alone is a bundle with both, or one file
    into which both were merged. Packets are matched one by one, even through address translation and segmentation
    offload: lost, late, duplicated or delivered, fields changed on the path, one-way delays, the offset of the two
    clocks, and the limit of each connection by both captures.

    `tcpwin pair client.pcap server.pcap` prints it; `-o ladder.html` draws it with the lost packets marked.
    """
    if a == b == "-":
        raise click.UsageError("standard input (-) can be read once")
    for written in (out, figure):
        spare_captures(tuple(each for each in (a, b) if each is not None), written)
    _check_chosen(a, b, capture_a, capture_b)
    if out is not None:
        _check_parquet(out)
    if figure is not None:
        _check_output(figure)
    from tcpwin.pairing import pair as pair_captures

    _ = options.selection
    sources = _source(a), None if b is None else _source(b)
    pairing = pair_captures(
        *sources,
        capture_a=capture_a,
        capture_b=capture_b,
        filter=options.filter,
        start=options.start,
        end=options.end,
    )
    if options.selection and not any(pairing.segments):
        from tcpwin.units import name_text

        raise SourceError(f"no TCP segment was selected in either capture: {name_text(str(options.selection))}")
    check_connection(connection, len(pairing))
    if out is not None:
        _write_packets(pairing, out)
    if figure is not None:
        _report(pairing, connection, figure, limit=limit, theme=theme)
    if as_json:
        import json

        click.echo(json.dumps(pairing.to_dict(), indent=1))
    else:
        from tcpwin.render import render_pairing

        show([render_pairing(pairing, limit=limit, connection=connection)], colour)
    for warning in pairing.warnings:
        complain(f"warning: {warning}")


def _source(name: str) -> str | Source:
    return open_captures((name,), keep=True) if name == "-" else name


def _check_chosen(a: str, b: str | None, capture_a: str | None, capture_b: str | None) -> None:
    """Reject --capture-a and --capture-b for a source with a single capture."""
    if capture_a is None and capture_b is None:
        return
    from tcpwin.hosts import is_bundle

    for letter, name, path in (("a", capture_a, a), ("b", capture_b, a if b is None else b)):
        if name is not None and not is_bundle(path):
            raise click.UsageError(
                f"--capture-{letter} needs a bundle (a folder, .zip or .tar.gz), and {path} is not one"
            )


def _check_parquet(out: str) -> None:
    if not out.lower().endswith(".parquet"):
        raise click.UsageError(f"--packets writes Parquet, and {out} is not named .parquet")
    need("parquet", "polars", extra="tables")


def _check_output(out: str) -> None:
    need("a figure", "plotly", extra="plot")
    from tcpwin.figures.drawing import FORMATS, check, format_of
    from tcpwin.render.report import require

    if format_of(out) is None:
        raise click.UsageError(f"{out} has no known extension: use one of {', '.join(FORMATS)}")
    check(out)
    if _is_page(out):
        require()


def _is_page(out: str) -> bool:
    return out.lower().endswith((".html", ".htm"))


def _report(pairing: Pairing, connection: int | None, out: str, *, limit: int, theme: str) -> None:
    """Write everything as a page, or one connection as a figure."""
    from tcpwin.figures import draw_ladder
    from tcpwin.figures.drawing import write
    from tcpwin.output import open_whole
    from tcpwin.render import most_lost_first
    from tcpwin.render.report import render_pair_page

    if _is_page(out):
        page = render_pair_page(pairing, connection=connection, limit=limit, theme=theme)
        with open_whole(out) as file:
            file.write(page)
        return
    if not len(pairing):
        raise SourceError("no connection is in both captures: there is nothing to draw")
    number = most_lost_first(pairing)[0].number if connection is None else connection
    write(draw_ladder(pairing, number, theme=theme), out, title=f"{pairing.name_a} – {pairing.name_b}")


def _write_packets(pairing: Pairing, out: str) -> None:
    from tcpwin.output import open_whole

    with open_whole(out, is_binary=True) as file:
        pairing.write_packets(file)
