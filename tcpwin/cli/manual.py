"""Manual pages of the commands, in the language of man, from what `--help` says.

In: the command group. Out: a page a command, as roff. It adds nothing that a command does not say of itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

import click

SECTION = 1
MOST_COLUMNS = 78
"""Of a line, as mandoc wants it."""
_EXIT = "Exit status:"


def manual_pages(group: click.Group, name: str, version: str) -> Iterator[tuple[str, str]]:
    """The file name and the text of the page of a group, and of each command below it."""
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
    said = [part for part in (first, *more) if not part.startswith(_EXIT)]
    for place, part in enumerate(said):
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
    """The pages above and below."""
    if context.parent is not None:
        yield _file_name(context.parent)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            yield f"{_file_name(context)}-{name}"


def _file_name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _paragraphs(command: click.Command) -> list[str]:
    """What a command says of itself, each paragraph on one line."""
    text = (command.help or command.short_help or "").replace("\b\n", "")
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _text(text: str) -> str:
    """A paragraph, whose code is bold."""
    marked = re.sub(r"`([^`]+)`", "\\\\fB\\1\\\\fR", _escaped(" ".join(text.split())))
    lines = wrap(marked, MOST_COLUMNS, break_long_words=False, break_on_hyphens=False)
    # A line that begins so would be a request.
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
