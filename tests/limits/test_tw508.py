"""TW508 idle-timeout: a RST after a long silence, and after a short one or a FIN."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import RTT_S, answer, exchange, reset
from stories.story import judged


@pytest.mark.parametrize("near", ["a", "b"])
def test_a_forgotten_idle_connection(tmp_path: Path, near: str) -> None:
    after_s = 0.004 if near == "a" else 0.0005
    verdict, analysis = answer(reset(exchange(near=near).wait(350), "b", after_s), tmp_path)
    [finding] = judged(analysis, "TW508")
    assert (verdict.limit, verdict.owner) == ("middlebox", "network")
    assert finding.evidence.values["idle_ns"] == pytest.approx(350e9, rel=0.01)
    assert "keep-alives well within 5 min 50 s" in (verdict.fix or "")
    assert "Nothing to fix" not in verdict.text


def test_a_short_silence_and_a_closed_connection_are_not_forgotten(tmp_path: Path) -> None:
    assert not judged(reset(exchange().wait(20), "b", RTT_S).analyze(tmp_path), "TW508")
    closed = exchange()
    closed.step("b", "FA")
    closed.next["b"] += 1
    closed.wait(RTT_S).acked["a"] = closed.next["b"]
    closed.step("a", "A")
    assert not judged(reset(closed.wait(350), "b", RTT_S).analyze(tmp_path), "TW508")
