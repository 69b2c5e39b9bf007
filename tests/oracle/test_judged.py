"""Labels judged by hand are still the opposite of tshark's."""

from __future__ import annotations

import pytest
from oracle.compare import FIELDS, events_of
from oracle.conftest import Look
from oracle.judged import FILE, Judged, read_judged


def name(judged: Judged) -> str:
    return f"{judged.name.rpartition('__')[2]}-{judged.frame}-{judged.field}"


@pytest.mark.parametrize("judged", read_judged(), ids=name)
def test_tshark_says_the_opposite(look: Look, judged: Judged) -> None:
    row, segment, _ = look(judged.name, judged.frame)
    assert (judged.field in events_of(row)) != (judged.field in segment.events)


def test_each_judgement_is_listed_once_with_a_reason() -> None:
    rows = read_judged()
    places = [(row.name, row.frame, row.field) for row in rows]
    assert places == sorted(set(places))
    assert {row.field for row in rows} <= set(FIELDS)
    assert all(row.why for row in rows)


def test_the_file_can_follow_a_list_of_debatable_frames() -> None:
    """Its first line equals the other's, and no row is read as one of another category."""
    first, *rows = FILE.read_text(encoding="utf8").splitlines()
    assert first == "category,file,frame,why"
    assert all(row.startswith("judged ") for row in rows)
