"""Files of reports and figures: whole, or not there."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from report.figures.drawn import SLOW_READER, connection

import tcpwin
from tcpwin.errors import OutputError
from tcpwin.report.drawing.export import write
from tcpwin.report.output import open_whole

ROOM_BYTES = 4096
FULL = Path("/dev/full")


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file becomes larger than a page: the rest fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("form", ["html", "json"])
def test_a_full_disk_leaves_no_half_of_a_report(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"report.{form}"
    with pytest.raises(OutputError, match=rf"^{path}: "):
        tcpwin.analyze(SLOW_READER).report(path)
    assert not path.exists()


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("form", ["html", "json"])
def test_nor_half_of_a_figure(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"window.{form}"
    figure = connection(SLOW_READER).figure("window")
    with pytest.raises(OutputError, match=rf"^{path}: "):
        write(figure, str(path), title="")
    assert not path.exists()


def test_an_interrupt_leaves_none_either(tmp_path: Path) -> None:
    def write_half() -> None:
        with open_whole(tmp_path / "report.md") as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_device_stays() -> None:
    with pytest.raises(OutputError, match=rf"^{FULL}: "), open_whole(FULL) as file:
        file.write("more than it takes")
    assert FULL.exists()


def test_what_cannot_be_opened_is_not_taken_away(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="Is a directory"), open_whole(tmp_path):
        pass
    assert tmp_path.exists()
