"""TW509 keep-alive-race: a request that crosses a FIN, and a FIN that answers one; a request after a FIN."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import answer, exchange, race
from stories.story import judged, says


@pytest.mark.parametrize("near", ["a", "b"])
def test_a_request_that_crosses_a_fin(tmp_path: Path, near: str) -> None:
    verdict, analysis = answer(race(near=near, crossed=True), tmp_path)
    [finding] = judged(analysis, "TW509")
    assert (finding.owner, finding.evidence.values["idle_ns"]) == ("server_application", pytest.approx(5e9, rel=0.02))
    assert "Nothing to fix" not in verdict.text
    assert "give up idle connections" in (verdict.fix or "")
    assert not judged(race(near=near, crossed=False).analyze(tmp_path), "TW509")


@pytest.mark.parametrize("near", ["a", "b"])
def test_a_request_after_the_fin(tmp_path: Path, near: str) -> None:
    """The server closes after 5 s; the client's application does not look, and uses the connection 1 s later."""
    story = exchange(near=near).wait(5)
    story.step("b", "FA")
    story.next["b"] += 1
    story.wait(0.04).ack("a")
    story.wait(1).data("a", 310, flags="PA")
    story.wait(0.04).step("b", "R")
    verdict, analysis = answer(story, tmp_path)
    [finding] = judged(analysis, "TW509")
    assert says(finding, "5", "1.04 s later all the same", "310 B")
    assert (verdict.limit, verdict.owner, verdict.side, verdict.cost_ns) == ("idle", "server_application", "server", 0)
    assert "Broken by an idle time-out: the connection was closed as a request came" in verdict.text
    assert not verdict.cost_text
