"""Rules that may not read a capture again use what the first reading kept, and open nothing."""

from __future__ import annotations

import gzip
import io
from typing import Any

from analysis.bundled import CAPTURES

import tcpwin
from tcpwin.limits import check
from tcpwin.sources import FileSource

LOSSY = CAPTURES / "lab" / "loss-1-percent.pcap.gz"


class Counting(FileSource):
    """A source that counts how often it is opened."""

    opened = 0

    def open(self) -> Any:
        self.opened += 1
        return super().open()


def test_nothing_is_read_again_where_that_is_not_wanted() -> None:
    again, once = (Counting(io.BytesIO(gzip.decompress(LOSSY.read_bytes()))) for _ in range(2))
    found = check(tcpwin.analyze(again))
    assert again.opened > 1
    kept = check(tcpwin.analyze(once), rereads=False)
    assert once.opened == 1
    assert [each.code for each in kept] == [each.code for each in found]
    assert [each.cost_ns for each in kept] == [each.cost_ns for each in found]
