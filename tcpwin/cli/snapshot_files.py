"""The snapshot files of a command line: paths, standard input, and the relevant files of bundles.

In: words. Out: SnapshotFiles, recognised but not read. Bundles stay open until the command ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.io import complain
from tcpwin.errors import SnapshotError

if TYPE_CHECKING:
    from tcpwin.hosts import Bundle, Member, SnapshotFile, UnknownLine

_NAMED = 10


def open_snapshots(
    paths: tuple[str, ...], *, what: str, only: str | None = None, one_host: bool = False
) -> list[SnapshotFile]:
    """Open and recognise the files; ``-`` is standard input; of a bundle, those that may hold the requested samples.

    Args:
        what: ``sockets`` or ``counters``.
        only: the host or file to use of bundles.
        one_host: reject a bundle of several hosts if `only` names none.

    Raises:
        SnapshotError: a bundle has no such file, or a file is not a snapshot.
        OSError: a path that cannot be read.
    """
    if paths.count("-") > 1:
        raise click.UsageError("standard input (-) can be read once")
    if "-" in paths and sys.stdin.isatty():
        raise click.UsageError("standard input is a terminal: pipe snapshots into it, as `ss -tmi | tcpwin ss -`")
    from tcpwin.hosts import SnapshotFile, formats_of, is_bundle

    found = []
    formats = formats_of(what)
    has_bundle = False
    for path in paths:
        if path == "-" or not is_bundle(path):
            found.append(SnapshotFile(path))
            continue
        from tcpwin.hosts import Bundle

        has_bundle = True
        bundle = click.get_current_context().with_resource(Bundle.open(path))
        members = _choose(bundle, [each for each in bundle.snapshots if each.format in formats], what, only)
        hosts = sorted({member.label for member in members})
        if one_host and len(hosts) > 1:
            raise click.UsageError(f"{path} has {what} of {len(hosts)} hosts; choose one (--only NAME): {_list(hosts)}")
        found += [bundle.snapshot(member) for member in members]
    if only is not None and not has_bundle:
        raise click.UsageError("--only chooses a host or a file of a bundle: a folder, .zip or .tar.gz")
    return found


def as_far_as_it_goes(file: SnapshotFile, ended: list[str], *, is_alone: bool) -> Iterator[Any]:
    """Yield the samples of a file up to an error in it, which goes to `ended`; raise it if there are no samples."""
    count = 0
    try:
        for sample in file:
            count += 1
            yield sample
    except SnapshotError as error:
        if is_alone and not count:
            raise
        ended.append(f"{file.name} was read up to its sample {count:,} only: {error.message}")


def _choose(bundle: Bundle, members: list[Member], what: str, only: str | None) -> list[Member]:
    if not members:
        others = sorted({member.format or "" for member in bundle.snapshots})
        raise SnapshotError(f"no {what} in this bundle ({', '.join(others) or 'no snapshots'})", bundle.name)
    if only is None:
        return members
    chosen = [each for each in members if only in (each.label, each.name, each.name.rpartition("/")[2])]
    if not chosen:
        names = [*sorted({member.label for member in members if member.label}), *(member.name for member in members)]
        raise SnapshotError(f"no {what} of {only} in this bundle; it has {_list(names)}", bundle.name)
    return chosen


def _list(names: Iterable[str]) -> str:
    names = [name or "unnamed" for name in names]
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


FORMS = ("table", "json", "jsonl", "csv", "arrow", "parquet")


def describe_file(file: SnapshotFile, samples: int) -> dict[str, Any]:
    """Return a file that was read, as an object of the JSON document."""
    return {
        "name": file.name,
        "format": file.format,
        "samples": samples,
        "unknown_lines": file.unknown.count,
        "first_unknown": [asdict(line) for line in file.unknown.first],
        "notes": sorted(file.notes),
    }


def unknown_lines_text(name: str, count: int, first: Sequence[UnknownLine]) -> str:
    """Return a sentence about a file's lines that were not understood."""
    from tcpwin.units import count_text

    return f"{name}: {count_text(count, 'line')} not understood (first: line {first[0].number})"


def warn_of(files: Sequence[SnapshotFile], samples: Sequence[int], wanted: str, ended: Iterable[str]) -> None:
    """Print to stderr which files have no samples, which lines were not parsed, what was assumed, and early ends.

    Args:
        samples: number of samples in each file.
        ended: sentences on files that were read in part.
    """
    for file, count in zip(files, samples, strict=True):
        if not count:
            complain(f"warning: {file.name}: no {wanted} in it ({file.format})")
        if file.unknown.count:
            complain(f"warning: {unknown_lines_text(file.name, file.unknown.count, file.unknown.first)}")
        for note in sorted(file.notes):
            complain(f"note: {file.name}: {note}")
    for sentence in ended:
        complain(f"warning: {sentence}")


only_option = click.option("--only", metavar="NAME", help="Only this host or file of a bundle.")


Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--json`, `--format` and `-o`."""
    options: tuple[Option, ...] = (
        click.option("--json", "as_json", is_flag=True, help="Write a JSON document; same as --format json."),
        click.option(
            "--format", "form", type=click.Choice(FORMS), help="Format; default: a table, or by the extension of OUT."
        ),
        click.option(
            "-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Write to this file."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
