"""Damaged snapshots of every format: readable parts are read, or one error names the problem."""

from __future__ import annotations

from damaged import damaged
from hosts.test_recognise import truths
from hypothesis import given, settings

from tcpwin.errors import SnapshotError
from tcpwin.hosts import SnapshotFile

LONGEST_BYTES = 20_000
TRUTHS = [truth.content for truth in truths() if len(truth.content) <= LONGEST_BYTES]


@settings(max_examples=300, deadline=None)
@given(damaged(TRUTHS))
def test_any_damage_is_read_or_one_error(content: bytes) -> None:
    said = "nothing"
    try:
        list(SnapshotFile(content))
    except SnapshotError as error:
        said = str(error)
    assert said
    assert said.isprintable()
