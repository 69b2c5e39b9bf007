"""TW313 path-outage: everything lost for a time, and single losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import answer, codes, outage, waits
from stories.story import judged

from tcpwin.limits import Finding


@pytest.mark.parametrize("sender", ["a", "b"])
@pytest.mark.parametrize("heard", [False, True])
def test_an_outage_of_the_path(tmp_path: Path, sender: str, heard: bool) -> None:
    verdict, analysis = answer(outage(near=sender, sender=sender, heard=heard), tmp_path)
    [finding] = judged(analysis, "TW313")
    assert (verdict.limit, verdict.owner) == ("path_outage", "network")
    assert verdict.cost_ns == pytest.approx(3.1e9, rel=0.2)
    assert isinstance(finding, Finding)
    assert ("packets arrived" in finding.text) == heard
    assert "TW312" not in codes(analysis)


def test_single_losses_are_no_outage(tmp_path: Path) -> None:
    assert not judged(waits(5.0).analyze(tmp_path), "TW313")
