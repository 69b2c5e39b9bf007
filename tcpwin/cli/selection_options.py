"""Which packets are looked at: `--filter`, `--from` and `--to`, which `measure` finds without being told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import click

if TYPE_CHECKING:
    from tcpwin.sources import Selection, Source

_SELECTED = "tcpwin.selection."


class Selected(TypedDict):
    """As `tcpwin.analyze` takes it."""

    filter: str | None
    start: str | None
    end: str | None


class CaptureMoment(click.ParamType):  # type: ignore[type-arg]
    """A time since the first packet, a time of day or a date with its time; as it was written."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from tcpwin.sources import read_moment

        try:
            read_moment(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


def _keep(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        ctx.meta[_SELECTED + name] = value

    return keep


def connection_span(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--from` and `--to` for a span of a connection: `first` and `last`, as they were written."""
    for option, name, end in (("--to", "last", "End"), ("--from", "first", "Start")):
        command = click.option(
            option,
            name,
            type=CaptureMoment(),
            metavar="TIME",
            help=f"{end} of the span: 12.5 or 250ms (since the connection's start), 10:05:30, "
            "2026-11-25T10:05:30Z (UTC).",
        )(command)
    return command


def check_span(first: str | None, last: str | None) -> None:
    """Refuse a span that ends before it begins, where that is known without the capture.

    Raises:
        UsageError: it does.
    """
    from tcpwin.sources import Selection

    try:
        Selection(start=first, end=last)
    except ValueError:
        raise click.UsageError("--to is not after --from") from None


def resolve_span(
    first: str | None, last: str | None, *, origin_ns: int, capture_ns: int
) -> tuple[int | None, int | None]:
    """A span's ends in nanoseconds since the epoch.

    Args:
        first: its start, as it was written.
        last: its end.
        origin_ns: what seconds are counted from.
        capture_ns: a time of the day that times of day are of.

    Raises:
        UsageError: the span ends before it begins.
    """
    from tcpwin.sources import read_moment, resolve_moment

    def resolved(moment: str | None) -> int | None:
        if moment is None:
            return None
        return resolve_moment(moment, origin_ns if read_moment(moment)[0] == "after" else capture_ns)

    start_ns, end_ns = resolved(first), resolved(last)
    if start_ns is not None and end_ns is not None and end_ns <= start_ns:
        raise click.UsageError("--to is not after --from")
    return start_ns, end_ns


def filter_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--filter`."""
    return click.option(
        "--filter",
        metavar="EXPR",
        expose_value=False,
        callback=_keep("filter"),
        help="Only packets that EXPR takes, in tcpdump's language: 'host 10.0.0.1 and port 443'.",
    )(command)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--filter`, `--from` and `--to`."""
    for option, name, end in (("--to", "end", "before"), ("--from", "start", "from")):
        command = click.option(
            option,
            name,
            type=CaptureMoment(),
            metavar="TIME",
            expose_value=False,
            callback=_keep(name),
            help=f"Only packets {end} TIME{' on' if name == 'start' else ''}: 12.5 or 250ms (since the first packet), "
            "10:05:30, 2026-11-25T10:05:30Z (UTC).",
        )(command)
    return filter_option(command)


def selected() -> Selected:
    """What the command line selects."""
    meta = {} if (context := click.get_current_context(silent=True)) is None else context.meta
    filter, start, end = (meta.get(_SELECTED + name) for name in ("filter", "start", "end"))
    return Selected(filter=filter, start=start, end=end)


def select(source: Source) -> Source:
    """The packets of a source that the command line selects."""
    from tcpwin.sources import SelectedSource

    selection = check_selection()
    return SelectedSource(source, selection) if selection else source


def check_selection() -> Selection:
    """What the command line selects.

    Raises:
        UsageError: the span ends before it begins.
    """
    from tcpwin.sources import Selection

    try:
        return Selection(**selected())
    except ValueError as error:
        raise click.UsageError(str(error)) from None
