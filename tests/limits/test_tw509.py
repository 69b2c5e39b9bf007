"""TW509 keep-alive-race: a request that crosses a FIN, and a FIN that answers one."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import answer, race
from stories.story import judged


@pytest.mark.parametrize("near", ["a", "b"])
def test_a_request_that_crosses_a_fin(tmp_path: Path, near: str) -> None:
    verdict, analysis = answer(race(near=near, crossed=True), tmp_path)
    [finding] = judged(analysis, "TW509")
    assert (finding.owner, finding.evidence.values["idle_ns"]) == ("server_application", pytest.approx(5e9, rel=0.02))
    assert "Nothing to fix" not in verdict.text
    assert "give up idle connections" in (verdict.fix or "")
    assert not judged(race(near=near, crossed=False).analyze(tmp_path), "TW509")
