"""References as objects of a JSON document: the names of the Python API, null where nothing is stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tcpwin.reference.article import Article
from tcpwin.reference.cells import Cell
from tcpwin.reference.comparison import Comparison
from tcpwin.reference.library import LabRun
from tcpwin.reference.model import Reference, Run


def describe_reference(reference: Reference, runs: Sequence[Run] | None = None) -> dict[str, Any]:
    """Describe a reference with all its runs, or some of them."""
    described: dict[str, Any] = _plain(reference)
    described["runs"] = [describe_run(run) for run in (reference.runs if runs is None else runs)]
    return described


def describe_run(run: Run) -> dict[str, Any]:
    """A run."""
    described: dict[str, Any] = _plain(run)
    return described


def describe_lab_run(run: LabRun) -> dict[str, Any]:
    """Describe a run of the library, with its curves."""
    described: dict[str, Any] = _plain(run)
    return described


def describe_article(article: Article) -> dict[str, Any]:
    """Describe an article with its entries."""
    described: dict[str, Any] = _plain(article)
    return described


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """Describe a comparison, with its runs in full."""
    described: dict[str, Any] = _plain(comparison)
    return described


def describe_cell(cell: Cell) -> dict[str, Any]:
    """Describe a cell of the matrix, with both runs in full."""
    described: dict[str, Any] = _plain(cell)
    return described


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
