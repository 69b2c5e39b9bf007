"""The page about twins has the tables of the recorded runs, and no inaccurate run passes as reliable."""

from __future__ import annotations

import json

from reference import ROOT
from worlds import twin_changes, twins
from worlds.predictions import FAR

PAGE = (ROOT / "tcpwin" / "docs" / "lab" / "twins.md").read_text(encoding="utf8")


def test_the_page_has_the_captures_without_a_twin() -> None:
    rows = [json.loads(line) for line in twins.FILE.read_text().splitlines()]
    assert twins.table(rows) in PAGE
    off = [row for row in rows if abs(twins.ratio_of(row) - 1) > twins.CLOSE or not twins.is_alike(row)]
    assert off
    assert not any(row["is_twin"] for row in off)


def test_the_page_has_the_inaccurate_predictions() -> None:
    rows = [json.loads(line) for line in twin_changes.FILE.read_text().splitlines()]
    assert twin_changes.table(rows) in PAGE
    for row in rows:
        for said in filter(None, (row["model"], row["twin"])):
            is_far = not 1 / FAR <= said["ns"] / row["completion_ns"] <= FAR
            assert not is_far or said["confidence"] == "possible"
