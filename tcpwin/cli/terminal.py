"""Text on standard output: coloured and wrapped on a terminal, the same lines plain in a pipe.

rich is loaded for a terminal alone. NO_COLOR (https://no-color.org), FORCE_COLOR (https://force-color.org) and
TERM=dumb are obeyed. Long pages to read go through a pager, as git's do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from tcpwin.render import ConnectionTable

COLOURS = ("auto", "always", "never")
HANG = 2
"""Indent of what does not fit on a line, below that line's own."""
STYLES = (
    (r"[Ll]imited by [^(]+", "bold"),
    (r"^ *(?:Cost|When|Fix|Evidence|Also)\b(?: \([^)]*\))?:", "bold"),
    (r"^ *(?:owner|remedy|beware|evidence|(?:not )?ruled out|values|when|ends)\b", "bold"),
    (r"(?:Cost|Fix)(?: first)?(?: \([^)]*\))?:", "bold"),
    (r"No problem found|No connection lost time|Nothing to fix|Too little time lost to be a problem", "green"),
    (r"no drops, gaps, duplicates or damage found", "green"),
    (r"^#\d+", "bold"),
    (r"TW\d{3} [a-z-]+", "cyan"),
    (r"(?<=\()error\b", "bold red"),
    (r"(?<=\()warning\b", "yellow"),
    (r"^Worse\b|  worse$", "red"),
    (r"^Better\b|  better$", "green"),
    (r"^(?:capture|quality|host|old|new|a|b) ", "dim"),
    (r"^(?:path, as the capture shows it|each limit lifted alone|nearest, and why|what other settings .*)$", "bold"),
    (r"^distance [\d.]+: .*", "bold"),
    (r"^(?:(?:time|state|field)  |cwnd: |Recv-Q: |retrans: ).*", "dim"),
    (r"(?<=  )(?:CLOSE-WAIT|SYN-SENT|SYN-RECV|LAST-ACK|FIN-WAIT-[12]|CLOSING)\b", "yellow"),
    (r"(?<=  )sysctl -w .*", "cyan"),
    (r"frame\.number in \{[^}]*\}?", "dim"),
)
"""What stands out, and how."""


def colour_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--color` to a command."""
    return click.option(
        "--color",
        "colour",
        type=click.Choice(COLOURS),
        default="auto",
        show_default=True,
        help="Colour the text; auto: on a terminal, and where FORCE_COLOR is set, but not where NO_COLOR is.",
    )(command)


def show(blocks: Iterable[Iterable[str] | ConnectionTable], colour: str = "auto") -> None:
    """Write lines and tables to standard output as it can show them."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    if sys.stdout is not None and (is_terminal or (_is_coloured(colour) and (colour == "always" or _is_forced()))):
        _show_on_terminal(blocks, is_coloured=_is_coloured(colour))
        return
    for line in plain_lines(blocks):
        click.echo(line)


def plain_lines(blocks: Iterable[Iterable[str] | ConnectionTable]) -> Iterator[str]:
    """The lines that a pipe or a file gets: as they are, and tables aligned."""
    from tcpwin.render import render_table

    for block in blocks:
        yield from block if isinstance(block, Iterable) else render_table(block)


def _is_coloured(colour: str) -> bool:
    if colour != "auto":
        return colour == "always"
    return not os.environ.get("NO_COLOR") and (_is_forced() or os.environ.get("TERM") != "dumb")


def _is_forced() -> bool:
    return bool(os.environ.get("FORCE_COLOR"))


def page(lines: Iterable[str]) -> None:
    """Write lines to read: on a terminal, through PAGER where they are more than its height."""
    from shutil import get_terminal_size

    told = list(lines)
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    size = get_terminal_size()
    rows = sum(max(1, -(-len(line) // size.columns)) for each in told for line in each.split("\n"))
    if is_terminal and rows >= size.lines:
        # As git has it: no longer than the text, colours through, and the text stays on the screen.
        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager("\n".join(told))
        return
    for line in told:
        click.echo(line)


def _show_on_terminal(blocks: Iterable[Iterable[str] | ConnectionTable], *, is_coloured: bool) -> None:
    from shutil import get_terminal_size

    from rich.console import Console
    from rich.text import Text

    width = get_terminal_size().columns
    console = Console(
        file=sys.stdout,
        width=width,
        color_system="standard" if is_coloured else None,
        force_terminal=is_coloured,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for block in blocks:
        if not isinstance(block, Iterable):
            _show_table(console, block)
            continue
        for line in block:
            text = Text(line)
            for pattern, style in STYLES if is_coloured else ():
                text.highlight_regex(pattern, style)
            for piece in _wrapped(console, text):
                console.print(piece, soft_wrap=True)


def _wrapped(console: Console, text: Text) -> Iterator[Text]:
    """A line in pieces of the terminal's width, the later ones indented below the first."""
    if text.cell_len <= console.width:
        yield text
        return
    from rich.text import Text

    indent = len(text.plain) - len(text.plain.lstrip())
    room = max(console.width - indent - HANG, 20)
    first, *more = text[indent:].wrap(console, room)
    yield Text(" " * indent) + first
    for piece in more:
        yield Text(" " * (indent + HANG)) + piece


def _show_table(console: Console, table: ConnectionTable) -> None:
    from rich.table import Table

    if not table.rows:
        return
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head, is_number in table.heads.items():
        shown.add_column(head, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row, is_problem in zip(table.rows, table.problems, strict=True):
        shown.add_row(*row, style="yellow" if is_problem else "")
    console.print(shown)
