"""`tcpwin man`: the manual pages of the commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

import click

from tcpwin.cli.program import cli
from tcpwin.output import open_whole

SECTION = 1
MOST_COLUMNS = 78
"""Longest line that mandoc accepts."""
_EXIT = "Exit status:"


def manual_pages(group: click.Group, name: str, version: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of the page of a group, and of each command below it."""
    top = click.Context(group, info_name=name, **group.context_settings)
    status = next(part for part in _paragraphs(group) if part.startswith(_EXIT))
    for context in _contexts(top):
        yield f"{_file_name(context)}.{SECTION}", "\n".join(_page(context, version, status)) + "\n"


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _contexts(click.Context(command, info_name=name, parent=context))


def _page(context: click.Context, version: str, status: str) -> Iterator[str]:
    command, path = context.command, context.command_path
    first, *more = _paragraphs(command)
    yield f'.TH "{_file_name(context).upper()}" {SECTION} "" "tcpwin {_escaped(version)}" "tcpwin manual"'
    yield from (".SH NAME", _text(f"{_file_name(context)} - {first.rstrip('.').replace('`', '')}"))
    yield from (".SH SYNOPSIS", f".B {_escaped(path)}", _text(" ".join(command.collect_usage_pieces(context))))
    yield ".SH DESCRIPTION"
    paragraphs = [part for part in (first, *more) if not part.startswith(_EXIT)]
    for place, part in enumerate(paragraphs):
        if place:
            yield ".PP"
        yield _text(part)
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None and not below.hidden:
                yield from (".TP", f"\\fB{_escaped(name)}\\fR", _text(below.get_short_help_str(limit=200)))
    yield ".SH OPTIONS"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", f"\\fB{_escaped(record[0])}\\fR", _text(record[1]))
    own = next((part for part in (first, *more) if part.startswith(_EXIT)), status)
    yield from (".SH EXIT STATUS", _text(own.removeprefix(_EXIT).strip()))
    near = list(_near(context))
    if near:
        yield ".SH SEE ALSO"
        for place, each in enumerate(near):
            yield f".BR {_escaped(each)} ({SECTION}){',' if place < len(near) - 1 else ''}"


def _near(context: click.Context) -> Iterator[str]:
    """Return the pages above and below."""
    if context.parent is not None:
        yield _file_name(context.parent)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            yield f"{_file_name(context)}-{name}"


def _file_name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _paragraphs(command: click.Command) -> list[str]:
    """Return a command's help, each paragraph on one line."""
    text = (command.help or command.short_help or "").replace("\b\n", "")
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _text(text: str) -> str:
    """Render a paragraph, with its code in bold."""
    marked = re.sub(r"`([^`]+)`", "\\\\fB\\1\\\\fR", _escaped(" ".join(text.split())))
    lines = wrap(marked, MOST_COLUMNS, break_long_words=False, break_on_hyphens=False)
    # A line that begins like this would be a request.
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


_BELOW = Path("share") / "man" / f"man{SECTION}"


@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Folder for the pages; default: share/man/man1 next to tcpwin's folder, or in ~/.local.",
)
def man(folder: str | None) -> None:
    """Write a manual page for each command, for `man tcpwin` and `man tcpwin-check`.

    The pages contain the text of --help. Packagers write them to their own folder with --to.
    """
    from tcpwin.units import count_text, name_text
    from tcpwin.version import __version__

    place = _default() if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in manual_pages(cli, "tcpwin", __version__):
        with open_whole(place / name) as file:
            file.write(text)
        count += 1
    click.echo(f"{name_text(str(place))}: {count_text(count, 'page')}")
    if folder is None and not _is_found():
        click.echo(f"man looks elsewhere: MANPATH={name_text(str(place.parent))}: man tcpwin")


def _default() -> Path:
    """Return the folder where man looks for pages, given a folder of the PATH."""
    called = shutil.which("tcpwin")
    beside = None if called is None else Path(called).absolute().parent.parent
    return (beside if beside is not None and os.access(beside, os.W_OK) else Path.home() / ".local") / _BELOW


def _is_found() -> bool:
    """Return whether man finds the pages; true if man is not installed."""
    if shutil.which("man") is None:
        return True
    found = subprocess.run(["man", "-w", "tcpwin"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return found.returncode == 0
