"""TW314 foreign-timer: equal waits of seconds, and those of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import answer, codes, waits
from stories.story import judged


def test_a_timer_that_no_kernel_has(tmp_path: Path) -> None:
    verdict, analysis = answer(waits(5.0), tmp_path)
    assert (verdict.limit, verdict.owner, verdict.side) == ("retransmission_timer", "server_host", "server")
    assert verdict.cost_ns == pytest.approx(20e9, rel=0.02)
    assert "TW314" in codes(analysis)
    assert not judged(waits(0.25).analyze(tmp_path), "TW314")
