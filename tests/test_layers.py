"""Packages import each other in one direction only, and ARCHITECTURE.md shows in which."""

from pathlib import Path

import layers
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def trees() -> dict[str, layers.Tree]:
    return layers.read_all()


def test_no_packages_import_each_other(trees: dict[str, layers.Tree]) -> None:
    assert not [cycle for tree in trees.values() for cycle in tree.cycles()]


def test_the_library_does_not_import_the_dashboard(trees: dict[str, layers.Tree]) -> None:
    assert "tcpwin_web" not in trees["tcpwin"].imports


def test_the_diagram_of_the_architecture_is_current(trees: dict[str, layers.Tree]) -> None:
    page = (ROOT / layers.PAGE).read_text(encoding="utf-8")
    assert layers.with_diagram(page, layers.diagram(trees)) == page, "run `just layers`"


@pytest.mark.parametrize(
    "low",
    [
        "from tcpwin.high import f",
        "def f():\n    import tcpwin.high.part",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..high import f",
        'LATER = {"figure": "tcpwin.high.part:draw"}',
    ],
    ids=["at the top", "in a function", "for type checkers", "in a string"],
)
def test_every_kind_of_import_closes_a_cycle(low: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    for path, text in {
        "__init__.py": "",
        "low/__init__.py": low,
        "high/__init__.py": "from tcpwin.low import g",
        "high/part.py": "",
    }.items():
        file = tmp_path / "tcpwin" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert layers.read_python(tmp_path / "tcpwin").cycles() == [["high", "low"]]


@pytest.mark.parametrize(
    ("wire", "is_cycle"),
    [
        ("use crate::tracker::Tracker;", True),
        ("use crate::{window::Scale, tracker::{Tracker, state}};", True),
        ("use super::super::tracker::Tracker;", True),
        ("fn f() -> crate::tracker::Tracker {}", True),
        ("// crate::tracker is above", False),
        ("#[cfg(test)]\nmod tests {\n    use crate::tracker::Tracker;\n}", False),
    ],
)
def test_paths_of_the_engine_are_read(wire: str, is_cycle: bool, tmp_path: Path) -> None:
    for path, text in {
        "lib.rs": "mod wire;\nmod tracker;\nmod window;",
        "wire/tcp.rs": wire,
        "tracker/mod.rs": "use crate::wire::tcp;",
        "window/mod.rs": "",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert layers.read_rust(tmp_path).cycles() == ([["tracker", "wire"]] if is_cycle else [])
