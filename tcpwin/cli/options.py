"""The options of commands that read captures, as one object, and the analysis that they request.

A new option for all of these commands is an entry of `_OPTIONS` and a field of `CaptureOptions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.io import complain, open_captures, progress
from tcpwin.cli.snapshot_files import unknown_lines_text
from tcpwin.sources import Source

if TYPE_CHECKING:
    from tcpwin.limits import Analysis
    from tcpwin.sources import Selection

_MAX_OFFSET_NS = 100 * 366 * 86_400 * 1_000_000_000
_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000, "h": 3_600_000_000_000}

MOST_THREADS = 1024
SEVERAL_WORDS = ("--with", "--with-old", "--with-new")


class WithSnapshots(click.Command):
    """A command whose `--with` takes all words up to the next option: ``--with ss.txt nstat.txt``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        opened = ""
        for place, word in enumerate(args):
            if word == "--":
                spread += args[place:]
                break
            if word.startswith("-") and word != "-":
                opened = word if word in SEVERAL_WORDS else ""
                following = args[place + 1 : place + 2]
                is_last = ctx.resilient_parsing and not following
                if opened and not is_last and (not following or (following[0].startswith("-") and following != ["-"])):
                    raise click.BadOptionUsage(word, f"Option {word!r} requires an argument.", ctx)
                if not opened:
                    spread.append(word)
            else:
                spread += [opened, word] if opened else [word]
        return super().parse_args(ctx, spread)


class Offset(click.ParamType):  # type: ignore[type-arg]
    """A signed time with its unit, such as ``-1.5s``; in nanoseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([+-]?\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s|min|h)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a time with a unit, such as -1.5s or 300ms", param, ctx)
        from fractions import Fraction

        offset_ns = int(Fraction(match[1]) * _UNITS_NS[match[2]])
        if abs(offset_ns) > _MAX_OFFSET_NS:
            self.fail(f"{value!r} is more than a century", param, ctx)
        return offset_ns


class WindowScale(click.ParamType):  # type: ignore[type-arg]
    """An address and its shift, such as ``10.0.0.1=7``."""

    name = "window scale"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        from tcpwin.hosts import read_scales

        host, _, shift = str(value).rpartition("=")
        if not host or not re.fullmatch(r"\d{1,3}", shift):
            self.fail(f"{value!r} is not a host with its shift, such as 10.0.0.1=7", param, ctx)
        try:
            [pair] = read_scales({host: int(shift)}).items()
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return pair


class CaptureMoment(click.ParamType):  # type: ignore[type-arg]
    """A time since the first packet, a time of day, or a date with its time; kept as written."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from tcpwin.sources import read_moment

        try:
            read_moment(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


def _scales(ctx: click.Context, _: click.Parameter, pairs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    scales = dict(pairs)
    for host, shift in pairs:
        if scales[host] != shift:
            raise click.BadParameter(f"{host} is given both {shift} and {scales[host]}", ctx)
    return scales


_IN_TIME = "12.5 or 250ms (since the first packet), 10:05:30, 2026-11-25T10:05:30Z (UTC)."
_OPTIONS = {
    "snapshots": click.option(
        "--with",
        "snapshots",
        multiple=True,
        metavar="SNAPSHOT...",
        shell_complete=completion.files,
        help="Host snapshots: output of ss, nstat, sysctl and so on, or a bundle; HOST=FILE names the host.",
    ),
    "clock_offset": click.option(
        "--clock-offset",
        type=Offset(),
        metavar="TIME",
        help="Capture clock minus snapshot clock, such as -1.5s; default: estimated.",
    ),
    "member": click.option("--capture", "member", metavar="NAME", help="The capture to read from a bundle."),
    "window_scales": click.option(
        "--window-scale",
        "window_scales",
        type=WindowScale(),
        multiple=True,
        metavar="HOST=N",
        callback=_scales,
        help="Window scale shift of the host with address HOST, if the capture lacks its SYN; may be repeated.",
    ),
    "threads": click.option(
        "--threads",
        type=click.IntRange(1, MOST_THREADS),
        metavar="N",
        help="Read with N threads; default: the cores available, where that helps. The result is the same.",
    ),
    "filter": click.option(
        "--filter",
        metavar="EXPR",
        help="Only packets that match EXPR, in tcpdump's language: 'host 10.0.0.1 and port 443'.",
    ),
    "start": click.option(
        "--from",
        "start",
        type=CaptureMoment(),
        metavar="TIME",
        help=f"Only packets from TIME on: {_IN_TIME}",
    ),
    "end": click.option(
        "--to", "end", type=CaptureMoment(), metavar="TIME", help=f"Only packets before TIME: {_IN_TIME}"
    ),
}
"""The options by the fields of `CaptureOptions` that they fill, in the order of the help."""

SELECTION = ("filter", "start", "end")
SNAPSHOTS = ("snapshots", "clock_offset", "member", "window_scales", "threads")


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The options for the captures that a command line names.

    Attributes:
        snapshots: files recorded on hosts.
        clock_offset: the capture's clock minus that of the snapshots, in nanoseconds.
        member: the capture of a bundle.
        window_scales: shifts by address.
        filter, start, end: select the packets to read.
    """

    snapshots: tuple[str, ...] = ()
    clock_offset: int | None = None
    member: str | None = None
    window_scales: Mapping[str, int] = field(default_factory=dict)
    threads: int | None = None
    filter: str | None = None
    start: str | None = None
    end: str | None = None

    @property
    def selection(self) -> Selection:
        """The packets to read.

        Raises:
            UsageError: the span ends before it begins.
        """
        from tcpwin.sources import Selection

        try:
            return Selection(self.filter, self.start, self.end)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def select(self, source: Source) -> Source:
        """Return the selected packets of a source."""
        from tcpwin.sources import SelectedSource

        selection = self.selection
        return SelectedSource(source, selection) if selection else source

    def analyze(
        self,
        captures: tuple[str, ...],
        *,
        follow: Iterable[int] | None = None,
        keep: bool = False,
        warn: Callable[[str], object] = complain,
        shows: bool = True,
        may_be_empty: bool = False,
    ) -> Analysis:
        """Analyse captures.

        Args:
            keep: standard input will be read again, as it always is with snapshots.
            warn: called with each warning about the captures and snapshots.
            shows: show a progress bar for a long file.
            may_be_empty: allow a selection that matches no packet.

        Raises:
            SourceError: no packet is selected: an empty answer would look like a good one.
        """
        from tcpwin.limits import analyze

        _ = self.selection
        source = _source(captures, self.member, keep=keep or bool(self.snapshots or self.window_scales))
        with progress(source if shows and isinstance(source, Source) else None) as update:
            analysis = analyze(
                source,
                snapshots=[_named(each) for each in self.snapshots],
                capture=self.member,
                clock_offset_ns=self.clock_offset,
                window_scales=self.window_scales,
                filter=self.filter,
                start=self.start,
                end=self.end,
                follow=follow,
                threads=self.threads,
                progress=update,
            )
        if not may_be_empty:
            require_packets(analysis)
        for warning in (*analysis.capture.warnings, *analysis.notes):
            warn(f"warning: {warning}")
        for file in (file for host in analysis.hosts for file in host.files):
            if file.unknown_lines:
                warn(f"warning: {unknown_lines_text(file.name, file.unknown_lines, file.first_unknown)}")
        return analysis


def capture_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add options to a command, which gets them as one object `options`; all of `_OPTIONS` unless some are named."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**values: Any) -> Any:
            given = {each.name: values.pop(each.name) for each in fields(CaptureOptions) if each.name in values}
            return command(options=CaptureOptions(**given), **values)

        chosen = run
        for name in reversed(names or (*_OPTIONS,)):
            chosen = _OPTIONS[name](chosen)
        return chosen

    return add


def connection_span(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--from` and `--to` for a span of a connection: `first` and `last`, as written."""
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
    """Reject a span that ends before it begins, if that is known without the capture.

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
    """Return a span's ends in nanoseconds since the epoch.

    Args:
        first: its start, as written.
        last: its end.
        origin_ns: the zero of times in seconds.
        capture_ns: a time on the day that times of day refer to.

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


def _source(captures: tuple[str, ...], member: str | None, *, keep: bool) -> Source | str:
    """Return the packets to read, or the bundle that contains them."""
    from tcpwin.hosts import is_bundle

    bundles = [path for path in captures if is_bundle(path)]
    if bundles and len(captures) > 1:
        raise click.UsageError(f"{bundles[0]} is a bundle: read it alone")
    if member is not None and not bundles:
        raise click.UsageError("--capture names a capture in a bundle: give a folder, .zip or .tar.gz")
    return bundles[0] if bundles else open_captures(captures, keep=keep)


def require_packets(analysis: Analysis) -> None:
    """Reject an empty selection.

    Raises:
        SourceError: the capture has packets, and none was selected.
    """
    from tcpwin.errors import SourceError
    from tcpwin.units import count_text, name_text

    capture = analysis.capture
    if analysis.selection is not None and capture.packets == capture.packets_left_out > 0:
        raise SourceError(
            f"{name_text(analysis.name)}: of {count_text(capture.packets, 'packet')} none was selected: "
            f"{name_text(str(analysis.selection))}"
        )


def _named(text: str) -> str | tuple[str, str]:
    """Split a word into a host's name, if any, and a path."""
    host, equals, path = text.partition("=")
    is_named = equals and path and not Path(text).exists() and "/" not in host
    return (host, path) if is_named else text
