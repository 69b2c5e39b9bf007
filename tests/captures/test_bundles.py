"""Every bundle in captures/bundles matches its TOML, and its claims hold."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import ladder
import pytest

import tcpwin

FOLDER = Path(__file__).parents[2] / "captures" / "bundles"
TRUTHS = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", TRUTHS, ids=lambda path: path.stem)
def test_bundle_matches_its_toml(path: Path) -> None:
    truth = tomllib.loads(path.read_text(encoding="utf8"))
    assert truth.keys() == {"title", "file", "origin", "licence", "sha256", "claims"}
    bundle = FOLDER / truth["file"]
    assert hashlib.sha256(bundle.read_bytes()).hexdigest() == truth["sha256"]
    analysis = tcpwin.analyze(bundle)
    connection = analysis.connections[0]
    names = ladder.names_of(analysis, connection=connection, samples=connection.snapshots)
    problems = [problem for claim in truth["claims"] if (problem := ladder.evaluate(claim, names))]
    assert not problems, "\n".join(problems)


def test_every_bundle_has_its_truth() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.suffix != ".toml"}
    assert files == {tomllib.loads(path.read_text(encoding="utf8"))["file"] for path in TRUTHS}
    assert len(files) >= 2
