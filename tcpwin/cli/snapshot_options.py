"""Captures on the command line together with what their hosts said: the options, and the analysis that they ask for.

`--with` takes several words, an offset of clocks has a unit, a bundle stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.inputs import open_captures, progress
from tcpwin.cli.program import complain
from tcpwin.cli.selection_options import check_selection, selected
from tcpwin.sources import Source

if TYPE_CHECKING:
    from tcpwin.limits import Analysis

_MAX_OFFSET_NS = 100 * 366 * 86_400 * 1_000_000_000
_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000, "h": 3_600_000_000_000}


_SCALES = "tcpwin.window_scales"
THREADS = "tcpwin.threads"
"""Where the command line's number of threads stands in the context."""
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
    """A signed time with its unit, as ``-1.5s``; in nanoseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([+-]?\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s|min|h)", str(value))
        if match is None:
            self.fail(f"{value!r} is no time with a unit, such as -1.5s or 300ms", param, ctx)
        offset_ns = int(Fraction(match[1]) * _UNITS_NS[match[2]])
        if abs(offset_ns) > _MAX_OFFSET_NS:
            self.fail(f"{value!r} is more than a century", param, ctx)
        return offset_ns


class WindowScale(click.ParamType):  # type: ignore[type-arg]
    """An address and its shift, as ``10.0.0.1=7``."""

    name = "window scale"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        from tcpwin.hosts import read_scales

        host, _, shift = str(value).rpartition("=")
        if not host or not re.fullmatch(r"\d{1,3}", shift):
            self.fail(f"{value!r} is no host with its shift, such as 10.0.0.1=7", param, ctx)
        try:
            [pair] = read_scales({host: int(shift)}).items()
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return pair


def _keep_scales(ctx: click.Context, _: click.Parameter, pairs: tuple[tuple[str, int], ...]) -> None:
    scales = dict(pairs)
    for host, shift in pairs:
        if scales[host] != shift:
            raise click.BadParameter(f"{host} is given both {shift} and {scales[host]}", ctx)
    ctx.meta[_SCALES] = scales


def window_scale_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--window-scale`, which `measure` and `window_scales` find without being told."""
    return click.option(
        "--window-scale",
        type=WindowScale(),
        multiple=True,
        metavar="HOST=N",
        expose_value=False,
        callback=_keep_scales,
        help="Shift of the windows of the host with address HOST, where the capture lacks its SYN; may be repeated.",
    )(command)


def window_scales() -> dict[str, int]:
    """The shifts that the command line gives, by address."""
    context = click.get_current_context(silent=True)
    found: dict[str, int] = {} if context is None else context.meta.get(_SCALES, {})
    return found


def _keep_threads(ctx: click.Context, _: click.Parameter, number: int | None) -> None:
    ctx.meta[THREADS] = number


def threads_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--threads`, which `measure` and `threads` find without being told."""
    return click.option(
        "--threads",
        type=click.IntRange(1, MOST_THREADS),
        metavar="N",
        expose_value=False,
        callback=_keep_threads,
        help="Read with N threads; default: the cores available, where that helps. The result is the same.",
    )(command)


def threads() -> int | None:
    """How many threads the command line asks for."""
    context = click.get_current_context(silent=True)
    found: int | None = None if context is None else context.meta.get(THREADS)
    return found


def snapshot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--with`, `--clock-offset` and `--capture`, as `snapshots`, `clock_offset` and `member`, and
    `--window-scale` and `--threads`."""
    options = (
        click.option(
            "--with",
            "snapshots",
            multiple=True,
            metavar="SNAPSHOT...",
            shell_complete=completion.files,
            help="Host snapshots: output of ss, nstat, sysctl and so on, or a bundle; HOST=FILE names the host.",
        ),
        click.option(
            "--clock-offset",
            type=Offset(),
            metavar="TIME",
            help="Capture clock minus snapshot clock, as -1.5s; default: estimated.",
        ),
        click.option("--capture", "member", metavar="NAME", help="The capture to read from a bundle."),
        window_scale_option,
        threads_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def measure(
    captures: tuple[str, ...],
    snapshots: tuple[str, ...],
    *,
    clock_offset: int | None = None,
    member: str | None = None,
    follow: Iterable[int] | None = None,
    keep: bool = False,
) -> Analysis:
    """The analysis of what the command line names, with a bar while a long file is read, and warnings on stderr.

    Args:
        keep: standard input will be read again; so it is with snapshots.
    """
    from tcpwin.limits import analyze

    check_selection()
    source = _source(captures, member, keep=keep or bool(snapshots or window_scales()))
    with progress(source if isinstance(source, Source) else None) as tell:
        analysis = analyze(
            source,
            snapshots=[_named(each) for each in snapshots],
            capture=member,
            clock_offset_ns=clock_offset,
            window_scales=window_scales(),
            **selected(),
            follow=follow,
            threads=threads(),
            progress=tell,
        )
    for warning in analysis.capture.warnings:
        complain(f"warning: {warning}")
    for note in analysis.notes:
        complain(f"warning: {note}")
    for file in (file for host in analysis.hosts for file in host.files):
        if file.unknown_lines:
            first = file.first_unknown[0]
            complain(
                f"warning: {file.name}: {file.unknown_lines} lines not understood, the first is line {first.number}"
            )
    return analysis


def _source(captures: tuple[str, ...], member: str | None, *, keep: bool) -> Source | str:
    """The packets to read, or the bundle that they are in."""
    from tcpwin.hosts import is_bundle

    bundles = [path for path in captures if is_bundle(path)]
    if bundles and len(captures) > 1:
        raise click.UsageError(f"{bundles[0]} is a bundle: read it alone")
    if member is not None and not bundles:
        raise click.UsageError("--capture names a capture in a bundle: give a folder, .zip or .tar.gz")
    return bundles[0] if bundles else open_captures(captures, keep=keep)


def _named(text: str) -> str | tuple[str, str]:
    """A path, or a host's name and a path."""
    host, equals, path = text.partition("=")
    is_named = equals and path and not Path(text).exists() and "/" not in host
    return (host, path) if is_named else text
