"""`tcpwin plot`: one figure as an image, a page or data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tcpwin.analysis import DirectionName
from tcpwin.cli import completion
from tcpwin.cli.io import ConnectionNumber, check_connection, complain, spare_captures
from tcpwin.cli.options import (
    SNAPSHOTS,
    CaptureOptions,
    WithSnapshots,
    capture_options,
    check_span,
    connection_span,
    resolve_span,
)
from tcpwin.errors import OutputError, SourceError, need

if TYPE_CHECKING:
    from tcpwin.limits import Analysis, Connection

TIMELINE = "timeline"


def _list_figures(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    figures = _figures()
    rows = [(name, figures.get(name).scope, figures.get(name).title) for name in figures.names()]
    rows.append((TIMELINE, "connection", "several of these, one above the other, on one time axis"))
    for name, scope, title in rows:
        click.echo(f"{name:20} {scope:11} {title}")
    ctx.exit()


def _figures() -> Any:
    """Import the package of figures, or name what it lacks in one sentence."""
    need("a figure", "plotly", "tsdownsample", extra="plot")
    from tcpwin import figures

    return figures


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options(*SNAPSHOTS, "filter")
@click.option(
    "--figure",
    "name",
    default="window",
    show_default=True,
    metavar="NAME",
    shell_complete=completion.figures,
    help="Figure to draw; see --list.",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_figures,
    help="List the figures.",
)
@click.option("--connection", type=ConnectionNumber(), metavar="N", help="Connection to draw; default: the worst.")
@click.option(
    "--direction", type=click.Choice(["a_to_b", "b_to_a"]), help="Direction; default: the one with more data."
)
@connection_span
@click.option(
    "--field",
    metavar="NAME",
    help="Socket field for socket-distribution; run for reference-window and reference-throughput.",
)
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True)
@click.option("--width", type=click.IntRange(100, 10_000), metavar="PIXELS", help="Width; default: 1000.")
@click.option("--height", type=click.IntRange(100, 10_000), metavar="PIXELS", help="Height; default: the figure's own.")
@click.option(
    "--scale",
    type=click.FloatRange(0.1, 8),
    default=2,
    show_default=True,
    metavar="N",
    help="Image pixels per pixel of width and height.",
)
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(dir_okay=False),
    metavar="OUT",
    help="Output file: .png, .svg, .pdf, .jpg, .webp, .html or .json.",
)
def plot(
    captures: tuple[str, ...],
    options: CaptureOptions,
    name: str,
    connection: int | None,
    direction: DirectionName | None,
    first: str | None,
    last: str | None,
    field: str | None,
    theme: str,
    width: int | None,
    height: int | None,
    scale: float,
    out: str,
) -> None:
    """Draw a figure of a connection, or of all of them, and write it to a file."""
    figures = _figures()
    from tcpwin.figures.drawing import FORMATS, check, format_of, write
    from tcpwin.units import name_text, short_name

    if format_of(out) is None:
        raise click.UsageError(f"{out} has no known extension: use one of {', '.join(FORMATS)}")
    check(out)
    spare_captures(captures, out)
    if name != TIMELINE and name not in figures.names():
        raise click.UsageError(f"unknown figure '{name}': choose one of {', '.join((*figures.names(), TIMELINE))}")
    check_span(first, last)
    given = {"--connection": connection, "--direction": direction, "--from": first, "--to": last, "--field": field}
    _refuse_unused(name, [option for option, value in given.items() if value is not None])
    is_whole = name != TIMELINE and figures.get(name).scope == "analysis"
    analysis = options.analyze(captures, keep=True)
    check_connection(connection, len(analysis))
    choices: dict[str, Any] = {"theme": theme}
    if is_whole:
        subject: Analysis | Connection = analysis
        try:
            figure = figures.draw(name, analysis, field=field, **choices)
        except ValueError as error:
            raise click.UsageError(f"{error}") from None
        title = f"{short_name(analysis.name)}: {figures.get(name).title}"
    else:
        subject = _chosen(analysis, connection)
        choices["start_ns"], choices["end_ns"] = resolve_span(
            first, last, origin_ns=subject.start_ns, capture_ns=analysis.capture.first_time_ns or 0
        )
        try:
            if name == TIMELINE:
                figure = figures.timeline(subject, direction=direction, **choices)
            else:
                figure = figures.draw(name, subject, direction=direction, field=field, **choices)
        except ValueError as error:
            raise click.UsageError(f"{error}") from None
        title = f"{subject.a} and {subject.b}: {TIMELINE if name == TIMELINE else figures.get(name).title}"
    reason = (figure.layout.meta or {}).get("nothing")
    if reason and (first or last):
        raise SourceError(f"{name_text(analysis.name)}: nothing to show: {reason}")
    if reason:
        complain(f"warning: nothing to show: {reason}")
    write(figure, out, title=title, width=width, height=height, scale=scale)


def _refuse_unused(name: str, given: list[str]) -> None:
    """Reject options that the figure ignores: it would seem to show what was requested.

    Raises:
        UsageError: an option does not apply.
    """
    kind = None if name == TIMELINE else _figures().get(name)
    unused = {"--field": "has no fields to choose from"} if kind is None or not kind.has_fields else {}
    if kind is not None and not kind.has_directions:
        unused["--direction"] = "chooses its directions itself"
    if kind is not None and not kind.has_time_axis:
        unused |= dict.fromkeys(("--from", "--to"), "is of all of a connection's life")
    if kind is not None and kind.scope == "analysis":
        unused |= dict.fromkeys(("--connection", "--direction", "--from", "--to"), "is of all connections")
    for option in given:
        if option in unused:
            raise click.UsageError(f"figure {name} {unused[option]}: {option} is not for it")


def _chosen(analysis: Analysis, number: int | None) -> Connection:
    """Return the connection given; otherwise the worst, which is reported if there are several."""
    if number is not None:
        return analysis.connections[number]
    if not len(analysis):
        raise OutputError(f"{analysis.name} has no TCP connection to draw")
    worst = analysis.worst(1)[0]
    if len(analysis) > 1:
        complain(f"drawing connection {worst.id} of {len(analysis):,}, the worst; --connection chooses another")
    return worst
