"""The command line's input and output: captures by name, progress, text on a terminal or in a pipe, documents.

rich is loaded only for a terminal. NO_COLOR (https://no-color.org), FORCE_COLOR (https://force-color.org) and
TERM=dumb are obeyed. Long pages go through a pager, as git's do.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tcpwin.output import open_whole

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from rich.console import Console
    from rich.text import Text

    from tcpwin.render import ConnectionTable
    from tcpwin.sources import Source


def complain(text: str) -> None:
    """Write one line to stderr, with names made printable."""
    from tcpwin.units import name_text

    click.echo(f"tcpwin: {name_text(text)}", err=True)


LAST_CONNECTION = (1 << 32) - 1
"""Largest connection number: the engine uses 32 bits."""

PROGRESS_FROM_BYTES = 64 << 20
"""Minimum size of a file with a progress bar: a smaller one is read before the bar becomes visible."""


def open_captures(captures: tuple[str, ...], *, keep: bool = False) -> Source:
    """Open the named files as a source; ``-`` alone is standard input, which with `keep` can be read again."""
    from tcpwin.sources import FileSource, of_paths

    if "-" in captures:
        if len(captures) > 1:
            raise click.UsageError("standard input (-) cannot be read together with files")
        if sys.stdin.isatty():
            raise click.UsageError("standard input is a terminal: pipe a capture into it")
        return FileSource(sys.stdin.buffer, name="standard input", keep=keep)
    return of_paths(captures)


def check_connection(connection: int | None, count: int) -> None:
    """Reject a connection number that the capture does not have."""
    from tcpwin.errors import SourceError

    if connection is not None and connection >= count:
        raise SourceError(f"no connection {connection}: the capture has {count}")


def spare_captures(captures: Iterable[str], out: str | None) -> None:
    """Reject an output that is also an input.

    Raises:
        UsageError: the output is one of the inputs.
    """
    if out is not None and Path(out).exists() and any(_is_same(out, each) for each in captures):
        raise click.UsageError(f"{out} is also an input file; choose another output with -o OUT")


def _is_same(out: str, capture: str) -> bool:
    if capture == "-":
        return _is_standard_input(out)
    return Path(capture).exists() and Path(out).samefile(capture)


def _is_standard_input(path: str) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError):
        return False


class ConnectionNumber(click.IntRange):
    """Any number from 0; numbers beyond the engine's range count as its last, which is equally absent."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return min(int(super().convert(value, param, ctx)), LAST_CONNECTION)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from tcpwin.cli.completion import connections

        return connections(ctx, param, incomplete)


@contextmanager
def progress(source: Source | None) -> Iterator[Callable[[int], object] | None]:
    """Show a bar on a terminal's stderr while a long file is read."""
    size_bytes = None if source is None else source.size_bytes
    if source is None or not sys.stderr.isatty() or size_bytes is None or size_bytes < PROGRESS_FROM_BYTES:
        yield None
        return
    with click.progressbar(length=size_bytes, label=f"reading {source.name}", file=sys.stderr) as bar:
        yield lambda bytes_read: bar.update(bytes_read - bar.pos)


COLOURS = ("auto", "always", "never")
HANG = 2
"""Indent of continuation lines, relative to their first line."""
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
    (
        r"^(?:path, as the capture shows it|each limit lifted alone|nearest, and why|expected with other .*)$",
        "bold",
    ),
    (r"^distance [\d.]+: .*", "bold"),
    (r"^(?:(?:time|state|field)  |cwnd: |Recv-Q: |retrans: ).*", "dim"),
    (r"(?<=  )(?:CLOSE-WAIT|SYN-SENT|SYN-RECV|LAST-ACK|FIN-WAIT-[12]|CLOSING)\b", "yellow"),
    (r"(?<=  )sysctl -w .*", "cyan"),
    (r"frame\.number in \{[^}]*\}?", "dim"),
)
"""Highlighted patterns, with their styles."""


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
    """Write lines and tables to standard output, styled if it is a terminal."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    if sys.stdout is not None and (is_terminal or (_is_coloured(colour) and (colour == "always" or _is_forced()))):
        _show_on_terminal(blocks, is_coloured=_is_coloured(colour))
        return
    for line in plain_lines(blocks):
        click.echo(line)


def plain_lines(blocks: Iterable[Iterable[str] | ConnectionTable]) -> Iterator[str]:
    """Return the lines for a pipe or a file: unstyled, and tables aligned."""
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
    """Write text for reading: on a terminal, through PAGER if it is longer than the screen."""
    from shutil import get_terminal_size

    texts = list(lines)
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    size = get_terminal_size()
    rows = sum(max(1, -(-len(line) // size.columns)) for each in texts for line in each.split("\n"))
    if is_terminal and rows >= size.lines:
        # As git does: exit if the text fits, keep colours, and leave the text on the screen.
        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager("\n".join(texts))
        return
    for line in texts:
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
    """Wrap a line to the terminal's width, with continuation lines indented."""
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


_ENDINGS = {"json": "json", "jsonl": "jsonl", "csv": "csv", "arrow": "arrow", "feather": "arrow", "parquet": "parquet"}


_BINARY = ("arrow", "parquet")


@dataclass(frozen=True, slots=True)
class Output:
    """The destination of results (None is standard output), and their format."""

    form: str
    path: str | None

    @contextmanager
    def opened(self) -> Iterator[IO[Any]]:
        """Open the output: for text, or for bytes if the format is binary.

        Raises:
            OutputError: it cannot be written.
        """
        if self.path is None:
            text = io.TextIOWrapper(sys.stdout.buffer, "utf-8", "surrogateescape", newline="", write_through=True)
            try:
                yield text
            finally:
                text.detach()
            return
        with open_whole(self.path, is_binary=self.form in _BINARY, errors="surrogateescape") as file:
            yield file


def choose_output(form: str | None, as_json: bool, path: str | None, inputs: tuple[str, ...]) -> Output:
    """Return the output that the options name; by default the format is implied by the file's extension.

    The name ``-`` is standard output, as it is standard input for inputs.
    """
    path = None if path == "-" else path
    if as_json:
        if form not in (None, "json"):
            raise click.UsageError(f"--json and --format {form} exclude each other")
        form = "json"
    form = form or _ENDINGS.get((path or "").rpartition(".")[2].lower(), "table")
    if path is None and form in _BINARY:
        raise click.UsageError(f"{form} is binary: name a file with -o OUT")
    spare_captures(inputs, path)
    from tcpwin.hosts import check_extra

    check_extra(form)
    return Output(form, path)


def write_lines(lines: Iterable[str], output: Output, colour: str = "never") -> None:
    """Write text lines, coloured as requested on a terminal."""
    if output.path is None:
        if colour == "never":
            for line in lines:
                click.echo(line)
        else:
            show([lines], colour)
        return
    with output.opened() as file:
        file.writelines(f"{line}\n" for line in lines)


def write_table(rows: Iterable[Mapping[str, Any]], kinds: Mapping[str, str], output: Output) -> None:
    """Write rows in a format for rows only."""
    from tcpwin.hosts import write_rows

    rows = _begun(rows)
    with output.opened() as file:
        left_out = write_rows(rows, kinds, output.form, file)
    for name, count in left_out.items():
        from tcpwin.units import count_text

        complain(f"warning: {name}: {count_text(count, 'number')} beyond 64 bits left empty; csv and jsonl hold them")


def write_document(
    schema: str, name: str, objects: Iterable[Mapping[str, Any]], facts: Callable[[], Mapping[str, Any]], output: Output
) -> None:
    """Write a JSON document: its schema, a list of objects one by one, and facts that are known only afterwards.

    A fact that is an iterator becomes a list of objects, too.
    """
    import json

    objects = _begun(objects)
    with output.opened() as file:
        file.write(f'{{"schema": {json.dumps(schema)}, {json.dumps(name)}: ')
        _write_list(objects, file)
        for key, value in facts().items():
            file.write(f",\n{json.dumps(key)}: ")
            if isinstance(value, Iterator):
                _write_list(value, file)
            else:
                file.write(json.dumps(value))
        file.write("}\n")


def _write_list(objects: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    import json

    file.write("[")
    for number, each in enumerate(objects):
        file.write(("," if number else "") + "\n" + json.dumps(each))
    file.write("\n]")


def _begun(items: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Compute the first item and return an equal iterator, so that unreadable input leaves no partial output."""
    rest = iter(items)
    first = list(islice(rest, 1))
    return chain(first, rest)
