"""A data set: a folder of Parquet files, and a manifest of the valid ones.

In: outcomes of tasks. Out: files in place, all files of a capture together. A manifest line is written once all files
of a capture are in place; files without a line are invalid, and the next run removes them. A file may have rows of
several captures; before some are removed, a line records that, and the next run completes interrupted removals.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tcpwin.errors import OutputError, SourceError
from tcpwin.fleet.schema import ALWAYS, ON_REQUEST, PARTITIONS, SCHEMA, describe_tables
from tcpwin.fleet.staging import STAGING, copy_without, staged_name
from tcpwin.fleet.task import Entry, Performed
from tcpwin.output import append_whole, open_whole

DESCRIPTION = "dataset.json"
MANIFEST = "manifest.jsonl"
_LOCK = ".lock"
_KEYED = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}\.parquet")


class Dataset:
    """An existing data set.

    Attributes:
        folder: its folder.
        entries: manifest entries by key.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A capture's row is added last and removed first: if it exists, so do the others.
        entries, self._leaving = _read_manifest(folder / MANIFEST)
        self.entries = {key: each for key, each in entries.items() if (folder / each.paths[-1]).exists()}

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Dataset:
        """Open a data set to read it.

        Raises:
            SourceError: the folder is not a data set, or has another version.
        """
        _check_description(Path(folder))
        return cls(Path(folder))

    def files(self, table: str) -> list[str]:
        """Return the valid files of a table, in order."""
        found = {path for entry in self.entries.values() for path in entry.paths if path.startswith(f"{table}/")}
        return [str(self.folder / path) for path in sorted(found)]

    def tables(self) -> dict[str, list[str]]:
        """Return the files of every table; tables that were not requested have none."""
        return {table: self.files(table) for table in (*ALWAYS, *ON_REQUEST)}

    def is_done(self, key: str, state: str) -> bool:
        """Whether a capture is present in this state."""
        entry = self.entries.get(key)
        return entry is not None and entry.state == state


class Writing(Dataset):
    """A data set that one run writes to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._holders: dict[str, set[str]] = defaultdict(set)
        for entry in self.entries.values():
            self._hold(entry)

    def take(self, performed: Performed) -> None:
        """Add captures' rows to the data set, replacing previous ones.

        Raises:
            OutputError: the data set cannot be written.
        """
        staged = self.folder / STAGING / performed.token
        entries = [outcome.entry() for outcome in performed.outcomes]
        try:
            self._let_go([key for each in performed.outcomes for key in (each.key, *each.replaces)])
            # Readers ignore captures without their row, so these come last.
            for number, path in sorted(enumerate(performed.paths), key=lambda each: _is_of_captures(each[1])):
                final = self.folder / path
                final.parent.mkdir(parents=True, exist_ok=True)
                (staged / staged_name(number)).replace(final)
            self._note(asdict(entry) for entry in entries)
        except FileNotFoundError:
            # The worker's folder has the same path but is another one, because its files are not visible here.
            raise OutputError(
                f"{self.folder}: a worker's files are missing: does every worker see the same folder?"
            ) from None
        except OSError as error:
            raise OutputError(f"{self.folder}: {error.strerror or error}") from None
        staged.rmdir()
        for entry in entries:
            self.entries[entry.key] = entry
            self._hold(entry)

    def _let_go(self, keys: Iterable[str]) -> None:
        """Remove captures' previous rows before adding new ones."""
        going = [self.entries.pop(key) for key in keys if key in self.entries]
        for entry in going:
            for path in entry.paths:
                self._holders[path].discard(entry.key)
        if any(self._holders[path] for entry in going for path in entry.paths):
            self._note({"leaves": entry.key, "paths": entry.paths} for entry in going)
        self._take_out({entry.key: entry.paths for entry in going})

    def _take_out(self, going: Mapping[str, Sequence[str]]) -> None:
        """Remove files that contain only these captures' rows, and rewrite others without those rows."""
        paths = {path for each in going.values() for path in each}
        for path in sorted(paths, key=_is_of_captures, reverse=True):
            file = self.folder / path
            if not self._holders[path]:
                file.unlink(missing_ok=True)
            elif file.exists():
                copy = self.folder / STAGING / file.name
                copy_without(file, copy, path.partition("/")[0], going.keys())
                copy.replace(file)

    def _hold(self, entry: Entry) -> None:
        for path in entry.paths:
            self._holders[path].add(entry.key)

    def _note(self, lines: Iterable[Mapping[str, Any]]) -> None:
        append_whole(self.folder / MANIFEST, "".join(json.dumps(line) + "\n" for line in lines))

    def finish_leaving(self) -> None:
        """Complete the removals of an interrupted run."""
        self._take_out(self._leaving)

    def clean(self) -> None:
        """Remove leftovers of interrupted runs."""
        shutil.rmtree(self.folder / STAGING, ignore_errors=True)
        (self.folder / STAGING).mkdir()
        counted = {path for entry in self.entries.values() for path in entry.paths}
        for table in (*ALWAYS, *ON_REQUEST):
            for path in (self.folder / table).rglob("*.parquet"):
                if path.relative_to(self.folder).as_posix() not in counted and _KEYED.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def mend_manifest(self) -> None:
        """Rewrite the manifest with one complete line per capture."""
        with open_whole(self.folder / MANIFEST) as file:
            for entry in self.entries.values():
                file.write(json.dumps(asdict(entry)) + "\n")


@contextmanager
def writing(folder: str | os.PathLike[str], also: Sequence[str]) -> Iterator[Writing]:
    """Open or create a data set for exclusive writing.

    Raises:
        OutputError: the folder contains something else, another run is writing to it, or it is not writable.
        SourceError: the data set has another version.
    """
    path = Path(folder)
    try:
        _make(path)
        with (path / _LOCK).open("w") as lock:
            _lock(lock.fileno(), path)
            dataset = Writing(path)
            dataset.clean()
            dataset.finish_leaving()
            dataset.mend_manifest()
            _describe(path, also)
            yield dataset
            with suppress(OSError):
                (path / STAGING).rmdir()
    except OSError as error:
        raise OutputError(f"{error.filename or path}: {error.strerror or error}") from None


def _make(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    if (path / DESCRIPTION).exists():
        _check_description(path)
    elif any(each.name not in (_LOCK, STAGING, MANIFEST) for each in path.iterdir()):
        raise OutputError(f"{path}: not empty and not a data set: choose another folder with -o DATASET")


def _lock(descriptor: int, path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(f"{path}: another run is writing to it") from None


def _describe(path: Path, also: Sequence[str]) -> None:
    """Write the data set's description into it."""
    document = {"schema": SCHEMA, "partitions": list(PARTITIONS), "tables": describe_tables((*ALWAYS, *sorted(also)))}
    with open_whole(path / DESCRIPTION) as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def _check_description(path: Path) -> None:
    try:
        document: Any = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        schema = document["schema"]
    except FileNotFoundError:
        raise SourceError(f"{path}: not a data set of `tcpwin fleet run`") from None
    except (NotADirectoryError, ValueError, TypeError, KeyError):
        raise SourceError(f"{path}: not a data set of `tcpwin fleet run`: invalid {DESCRIPTION}") from None
    if schema != SCHEMA:
        raise SourceError(f"{path}: a data set of version {schema}; this tcpwin reads {SCHEMA}: create it again")


def _is_of_captures(path: str) -> bool:
    return path.startswith("captures/")


def _read_manifest(path: Path) -> tuple[dict[str, Entry], dict[str, tuple[str, ...]]]:
    """Return the last line of each capture, and the files with pending removals; incomplete lines are ignored."""
    entries: dict[str, Entry] = {}
    leaving: dict[str, tuple[str, ...]] = {}
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                with suppress(ValueError, TypeError, KeyError):
                    document = json.loads(line)
                    if "leaves" in document:
                        leaving[document["leaves"]] = tuple(document["paths"])
                        entries.pop(document["leaves"], None)
                        continue
                    entry = Entry(**{**document, "paths": tuple(document["paths"])})
                    entries[entry.key] = entry
                    leaving.pop(entry.key, None)
    except FileNotFoundError:
        pass
    return entries, leaving
