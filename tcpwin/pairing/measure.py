"""Pair two captures, or a bundle with two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpwin.errors import SourceError
from tcpwin.pairing.pairing import Pairing
from tcpwin.sources import HeadersSource, SelectedSource, Selection, Source, resolve
from tcpwin.units import count_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.hosts import Bundle
    from tcpwin.limits import Analysis
    from tcpwin.sources import Moment, Packets

_NAMED = 10


def pair(
    a: Packets | Source | Analysis,
    b: Packets | Source | Analysis | None = None,
    *,
    capture_a: str | None = None,
    capture_b: str | None = None,
    filter: str | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    progress: Callable[[int], object] | None = None,
) -> Pairing:
    """Pair two captures of the same traffic, taken at two points.

    Args:
        a: a capture, as for :func:`tcpwin.analyze`, or its analysis; or alone, a bundle with two captures (a folder,
            .zip or .tar), or a capture with the packets of two points, as found by rule TW610, whose frame numbers are
            kept.
        b: the other capture.
        capture_a: capture to read if `a` is a bundle with several.
        capture_b: the same for `b`, or for `a` if given alone.
        filter: select packets of both, as for :func:`tcpwin.analyze`.
        start: ignore earlier packets; seconds count from each capture's first packet.
        end: ignore packets from this time on.
        progress: called periodically with the bytes read so far; each capture is read twice, or three times if times
            alone do not show which point is nearer to which host.

    Raises:
        CaptureError: a capture cannot be read.
        FilterError: libpcap rejects the filter.
        SnapshotError: a bundle cannot be read.
        SourceError: a single bundle does not have two captures and none were chosen, a single capture has one point
            only, or a capture name is given without a bundle.
        ArgumentError: the span ends before it begins, or has an invalid end.
    """
    from tcpwin import _engine

    selection = Selection(filter, start, end)
    if b is None:
        inputs = _both(a, (capture_a, capture_b), selection, progress)
    else:
        inputs = _one(a, "a", capture_a, selection), _one(b, "b", capture_b, selection)
    sources = inputs[0].source, inputs[1].source
    names = (sources[0].name, sources[1].name)
    first_offset_ns = _engine.first_offset(sources[0].open(), sources[1].open(), names=names, progress=progress)

    leaves_at_a: dict[int, bool] = {}

    def read(take: Callable[[dict[str, NDArray[Any]]], object] | None) -> dict[str, Any]:
        opened = sources[0].open(), sources[1].open()
        return _engine.pair(
            *opened,
            names=names,
            first_offset_ns=first_offset_ns or 0,
            leaves_at_a=leaves_at_a,
            take=take,
            progress=progress,
        )

    found = read(None)
    if found["turned"]:
        # Times and losses disagree about which point is nearer to which host.
        leaves_at_a.update(found["turned"])
        found = read(None)
    # A file of headers keeps the facts about the capture it was made from.
    found["facts"] = tuple(source.facts or facts for source, facts in zip(sources, found["facts"], strict=True))
    return Pairing(names, found, read, lambda letter: inputs["ab".index(letter)].analyze())


@dataclass(frozen=True)
class _Input:
    """A capture, and its bundle if any."""

    source: Source
    bundle: Any = None
    analysis: Analysis | None = None

    def analyze(self) -> Analysis:
        from tcpwin.limits import analyze

        if self.analysis is not None:
            return self.analysis
        return analyze(self.source, snapshots=() if self.bundle is None else (self.bundle,))


def _one(source: Any, letter: str, name: str | None, selection: Selection) -> _Input:
    """Return one capture, also from a bundle with one, or with one chosen."""
    from tcpwin.hosts import open_capture, opened
    from tcpwin.limits import Analysis

    if isinstance(source, Analysis):
        _refuse_name(source.name, letter, name)
        return _Input(_select(source._source, selection), analysis=None if selection else source)
    with opened(source) as bundle:
        if bundle is None:
            _refuse_name(source, letter, name)
            return _Input(_select(resolve(source), selection))
        return _Input(_select(open_capture(bundle, name, option=f"--capture-{letter}"), selection), source)


def _refuse_name(source: Any, letter: str, name: str | None) -> None:
    if name is not None:
        raise SourceError(f"{source} is not a bundle, so --capture-{letter} cannot choose from it")


def _select(source: Source, selection: Selection) -> Source:
    return SelectedSource(source, selection) if selection else source


def _both(
    source: Any,
    chosen: tuple[str | None, str | None],
    selection: Selection,
    progress: Callable[[int], object] | None,
) -> tuple[_Input, _Input]:
    """Return the two captures of a bundle, the sender's or client's first if named so; or of one file."""
    from tcpwin.hosts import opened

    with opened(source) as bundle:
        if bundle is None:
            for letter, name in zip("ab", chosen, strict=True):
                _refuse_name(source, letter, name)
            return _points(_select(resolve(source), selection), progress)
        first, second = (_select(each, selection) for each in _captures(bundle, chosen))
        return _Input(first, source), _Input(second, source)


def _points(source: Source, progress: Callable[[int], object] | None) -> tuple[_Input, _Input]:
    """Split a capture of two points, into files that last as long as their readers."""
    from pathlib import Path

    from tcpwin import _engine

    folder = _Folder()
    outs = [str(Path(folder.path, f"{letter}.pcapng")) for letter in "ab"]
    found = _engine.split_points(source.open(), source.open, (outs[0], outs[1]), name=source.name, progress=progress)
    if found is None:
        raise SourceError(
            f"{source.name}: few of its packets appear twice within the searched distance: it is a capture of "
            "one point (name the other one too, or a bundle that has both), or of two whose clocks are far apart (name "
            "the captures as they were before they were merged)"
        )
    *_, facts = found
    first, second = (
        _Point(out, facts, f"{source.name}: point {letter}", folder) for out, letter in zip(outs, "ab", strict=True)
    )
    return _Input(first), _Input(second)


class _Folder:
    """A private folder that is deleted with its last user."""

    def __init__(self) -> None:
        import shutil
        import tempfile
        import weakref

        self.path = tempfile.mkdtemp(prefix="tcpwin-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _Point(HeadersSource):
    """One point of a capture with two; its file lasts as long as this object."""

    def __init__(self, path: str, facts: Sequence[Mapping[str, Any]], name: str, folder: _Folder) -> None:
        super().__init__([path], facts, name=name)
        self._folder = folder


def _captures(bundle: Bundle, chosen: tuple[str | None, str | None]) -> tuple[Source, Source]:
    from tcpwin.hosts import captures_of, open_capture

    if any(chosen):
        first, second = (
            open_capture(bundle, name, option=f"--capture-{letter}") for letter, name in zip("ab", chosen, strict=True)
        )
        return first, second
    names = list(captures_of(bundle))
    if len(names) != 2:
        names_text = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        raise SourceError(
            f"{bundle.name} has {count_text(len(names), 'capture')}, not two{': ' + names_text if names_text else ''}"
            f"{'; choose two (--capture-a NAME, --capture-b NAME)' if len(names) > 2 else ''}{_bundles_in(bundle.name)}"
        )
    earlier, later = sorted(
        names, key=lambda name: not any(word in name.lower() for word in ("sender", "client", "snd"))
    )
    return open_capture(bundle, earlier), open_capture(bundle, later)


def _bundles_in(name: str) -> str:
    """Return a hint for a folder of bundles."""
    from pathlib import Path

    from tcpwin.hosts import ARCHIVES

    folder = Path(name)
    if not folder.is_dir():
        return ""
    archives = sorted(each.name for each in folder.iterdir() if each.name.lower().endswith(ARCHIVES))
    if not archives:
        return ""
    names_text = ", ".join(archives[:_NAMED]) + (", …" if len(archives) > _NAMED else "")
    return f"; each of its archives is a bundle by itself: {names_text}"
