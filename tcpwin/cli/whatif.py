"""`tcpwin whatif`: a connection's path as its capture shows it, and the predicted effect of a change."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.bdp import parse_rate, parse_rtt
from tcpwin.cli.io import ConnectionNumber, check_connection, colour_option, show
from tcpwin.cli.lab import SERIES
from tcpwin.cli.options import CaptureOptions, WithSnapshots, capture_options

if TYPE_CHECKING:
    from tcpwin.lab.twin import Twin
    from tcpwin.limits import Analysis, Connection
    from tcpwin.paths import Changes


class Loss(click.ParamType):  # type: ignore[type-arg]
    """A loss with its percent sign, or 0; as a share."""

    name = "loss"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,9})?) ?%|0(?:\.0*)?", str(value))
        if found is None or float(found[1] or 0) >= 100:
            self.fail(f"{value!r} is not a loss from 0 to below 100 %: write 0, 0.5% or 2%", param, ctx)
        return float(found[1] or 0) / 100


class Setting(click.ParamType):  # type: ignore[type-arg]
    """An end's setting and its value: ``receiver.tcp_rmem=32M``."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, wanted = str(value).partition("=")
        if not equals or not wanted.strip():
            self.fail(f"{value!r} is not a setting with its value, such as receiver.tcp_rmem=32M", param, ctx)
        return name.strip(), wanted.strip()


def _parsed(parse: Callable[[str], Fraction]) -> Callable[[click.Context, click.Parameter, str | None], float | None]:
    return lambda ctx, param, value: None if value is None else float(parse(value))  # noqa: ARG005


@click.command(cls=WithSnapshots)
@click.argument("capture", metavar="CAPTURE", shell_complete=completion.files)
@click.option("--connection", type=ConnectionNumber(), metavar="N", help="The connection; default: the worst.")
@click.option(
    "--set",
    "settings",
    type=Setting(),
    multiple=True,
    metavar="END.NAME=VALUE",
    help="A setting of sender, receiver, client or server: receiver.tcp_rmem=32M, sender.tcp_wmem=16M, "
    "sender.tcp_congestion_control=bbr; may be repeated.",
)
@click.option(
    "--lift",
    multiple=True,
    metavar="LIMIT",
    shell_complete=completion.limits,
    help="Lift a limit, as a verdict names it; may be repeated.",
)
@click.option("--loss", type=Loss(), metavar="PERCENT", help="Random loss on the path: 0, 0.5%.")
@click.option("--rtt", callback=_parsed(parse_rtt), metavar="TIME", help="The path's round trip: 20ms.")
@click.option("--rate", callback=_parsed(parse_rate), metavar="RATE", help="The path's rate: 100Mbit.")
@click.option("--each", is_flag=True, help="Lift each limit alone, and rank them by gain.")
@click.option(
    "--twin",
    "twin_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also run the change in the lab's kernel, next to an unchanged run; the bundles go to FOLDER.",
)
@click.option(
    "--kernel",
    "series",
    type=click.Choice(SERIES),
    help="With --twin: the lab's Linux; default: the one that counts receive memory like the receiver's.",
)
@capture_options()
@click.option("--json", "as_json", is_flag=True, help="Write a JSON document.")
@colour_option
def whatif(
    capture: str,
    connection: int | None,
    settings: tuple[tuple[str, str], ...],
    lift: tuple[str, ...],
    loss: float | None,
    rtt: float | None,
    rate: float | None,
    each: bool,
    twin_folder: Path | None,
    series: str | None,
    options: CaptureOptions,
    as_json: bool,
    colour: str,
) -> None:
    """Predict throughput and duration of a connection after a change.

    Without a change: its path as the capture shows it, and every limit lifted alone. Predictions use the cost model of
    the verdict, with an interval. Exit status 3: the capture is insufficient.

    With --twin, the lab's kernel (`tcpwin lab build`) runs the connection once unchanged and once with the change. If
    the unchanged run does not behave like the capture, nothing is predicted.

    `tcpwin whatif case.zip --set receiver.tcp_rmem=32M --set sender.tcp_wmem=32M`
    """
    from tcpwin.errors import SourceError
    from tcpwin.paths import WHATIF_SCHEMA, ChangeError, WhatIf, WhatIfError, describe_whatif, fit_path, read_changes
    from tcpwin.paths import whatif as predict

    if series is not None and twin_folder is None:
        raise click.UsageError("--kernel goes with --twin")
    analysis = options.analyze((capture,), keep=True)
    check_connection(connection, len(analysis))
    if not len(analysis):
        raise SourceError(f"{capture}: the capture has no TCP connection")
    chosen = analysis.worst(1)[0] if connection is None else analysis.connections[connection]
    is_asked = bool(settings or lift) or any(given is not None for given in (loss, rtt, rate))
    found: WhatIf | WhatIfError
    try:
        try:
            found = predict(
                chosen,
                settings,
                lift=lift,
                loss_share=loss,
                round_trip_ns=rtt,
                rate_bps=rate,
                each=each or not is_asked,
            )
        except WhatIfError as error:
            if twin_folder is None:
                raise
            # A run may show what the model cannot predict.
            found = error
        twin = None
        path = fit_path(chosen)
        if twin_folder is not None and path is not None:
            changes = read_changes(path, settings, lift=lift, loss_share=loss, round_trip_ns=rtt, rate_bps=rate)
            twin = try_twin(analysis, chosen, changes, twin_folder, Path(capture).name.partition(".")[0], series)
    except ChangeError as error:
        raise click.UsageError(str(error)) from None
    if twin is None and isinstance(found, WhatIfError):
        raise found
    if as_json:
        import json

        from tcpwin.lab.twin import describe_twin

        more = {} if twin is None else {"twin": describe_twin(twin)}
        outcome = {"refused": str(found)} if isinstance(found, WhatIfError) else describe_whatif(found)
        click.echo(json.dumps({"schema": WHATIF_SCHEMA, **outcome, **more}, indent=1))
        return
    from tcpwin.render import render_whatif

    blocks = [] if isinstance(found, WhatIfError) else [render_whatif(found)]
    if isinstance(found, WhatIfError):
        click.echo(f"the model: {found}", err=True)
    show([*blocks, *([] if twin is None else [render_twin(twin)])], colour)


_WIDTH = 120


def try_twin(
    analysis: Analysis, connection: Connection, changes: Changes, folder: Path, name: str, series: str | None
) -> Twin:
    """Run the twin, with progress on the terminal."""
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
    """Yield the results of the runs and their conclusion."""
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
