"""`tcpwin check` of several captures: the findings of each, in one document of the format that was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from tcpwin.cli.program import complain
from tcpwin.cli.rule_options import chosen_rules, parse_thresholds
from tcpwin.cli.several import Piece, Told, captures_document, hint_of_pieces, tell_each, warn_of
from tcpwin.cli.ss import Output, write_lines
from tcpwin.cli.terminal import plain_lines, show
from tcpwin.sources import public_name
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.limits import Analysis, Baseline, Kind, Known
    from tcpwin.render import ConnectionTable


class _Found(NamedTuple):
    """What was found in a capture: blocks of a text, or a file with the document."""

    worst: int
    piece: Piece
    blocks: list[list[str] | ConnectionTable]
    document: Path | None
    kinds: dict[Kind, Known]


def check_each(
    files: list[str],
    *,
    clock_offset: int | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    thresholds: tuple[str, ...],
    limit: int | None,
    fail_on: str,
    known: Baseline | None,
    accepted: str | None,
    output: Output,
    colour: str,
) -> tuple[int, int]:
    """Write what was found in each capture; return the worst severity, 0 without any, and how many were unreadable.

    Args:
        known: sets findings aside.
        accepted: write all findings to this file as a baseline instead.
    """
    from tempfile import TemporaryDirectory

    from tcpwin.cli.check import accept

    with TemporaryDirectory(prefix="tcpwin-") as folder:
        found = partial(
            _find,
            folder=Path(folder),
            select=select,
            ignore=ignore,
            thresholds=thresholds,
            limit=limit,
            fail_on=fail_on,
            known=known,
            accepted=accepted,
            form=output.form,
        )
        all_told: list[Told[_Found]] = []
        for told in tell_each(files, found, clock_offset=clock_offset, keep=True):
            warn_of(told)
            if accepted is None and output.form == "text" and output.path is None:
                show(_blocks(told), colour)
            all_told.append(told)
        if accepted is not None:
            answered = (told.answer.kinds for told in all_told if told.answer is not None)
            accept({kind: count for kinds in answered for kind, count in kinds.items()}, accepted)
        elif output.form == "text":
            if output.path is not None:
                write_lines((line for told in all_told for line in plain_lines(_blocks(told))), output)
        else:
            _write(all_told, output)
    answers = [told.answer for told in all_told if told.answer is not None]
    if len(answers) == len(files):
        hint_of_pieces([answer.piece for answer in answers])
    return max((answer.worst for answer in answers), default=0), len(files) - len(answers)


def _find(
    analysis: Analysis,
    file: str,
    *,
    folder: Path,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    thresholds: tuple[str, ...],
    limit: int | None,
    fail_on: str,
    known: Baseline | None,
    accepted: str | None,
    form: str,
) -> _Found:
    from tcpwin.cli.check import SHOWN, require_packets, text_blocks, write_findings
    from tcpwin.limits import Severity, asked_of, kinds_of
    from tcpwin.limits import check as judge

    rules = chosen_rules(select, ignore)
    require_packets(analysis)
    found = judge(analysis, chosen=rules, thresholds=parse_thresholds(thresholds))
    piece = Piece.of(analysis, public_name(file))
    if accepted is not None:
        return _Found(0, piece, [], None, kinds_of(Path(accepted), analysis, found))
    if known is not None:
        found = known.set_aside(analysis, found)
    worst = int(found.worst or 0)
    if form == "text":
        for each in found.failed:
            complain(f"warning: {each}")
        blocks = text_blocks(analysis, found, len(asked_of(analysis, rules)), SHOWN if limit is None else limit)
        return _Found(worst, piece, [list(each) if isinstance(each, Iterable) else each for each in blocks], None, {})
    path = folder / uuid4().hex
    least = None if fail_on == "never" else Severity[fail_on.upper()]
    write_findings(analysis, found, rules, limit, least, Output(form, str(path)), "never")
    return _Found(worst, piece, [], path, {})


def _blocks(told: Told[_Found]) -> Iterator[Iterable[str] | ConnectionTable]:
    if told.answer is not None:
        yield [f"== {name_text(told.file)}"]
        yield from told.answer.blocks
        yield [""]


def _write(all_told: Sequence[Told[_Found]], output: Output) -> None:
    from tcpwin.render import join_junit, join_sarif, render_unreadable

    failures = {told.file: told.failure for told in all_told if told.failure is not None}
    if output.form == "json":
        with captures_document(output) as add:
            for told in all_told:
                add(told, None if told.answer is None else told.answer.document)
        return
    paths = [told.answer.document for told in all_told if told.answer is not None and told.answer.document is not None]
    documents = (path.read_text(encoding="utf-8", errors="surrogateescape") for path in paths)
    if output.form == "github":
        lines = chain((document.rstrip("\n") for document in documents), render_unreadable(failures))
        write_lines(lines, output)
    elif output.form == "junit":
        write_lines([join_junit(documents, failures).rstrip("\n")], output)
    else:
        write_lines([json.dumps(join_sarif(map(json.loads, documents), failures.values()), indent=1)], output)
