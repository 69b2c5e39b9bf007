"""TW313 path-outage: everything lost for a time, and single losses."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import RTT_S, answer, codes, outage, waits
from stories.story import Story, judged
from stories.window_stories import sample

from tcpwin.limits import Finding


@pytest.mark.parametrize("sender", ["a", "b"])
@pytest.mark.parametrize("heard", [False, True])
def test_an_outage_of_the_path(tmp_path: Path, sender: str, heard: bool) -> None:
    verdict, analysis = answer(outage(near=sender, sender=sender, heard=heard), tmp_path)
    [finding] = judged(analysis, "TW313")
    assert (verdict.limit, verdict.owner, verdict.confidence) == ("path_outage", "network", "likely")
    assert verdict.cost_ns == pytest.approx(3.1e9, rel=0.2)
    assert isinstance(finding, Finding)
    assert ("packets arrived" in finding.text) == heard
    assert "TW312" not in codes(analysis)


@pytest.mark.parametrize("sender", ["a", "b"])
@pytest.mark.parametrize("heard", [False, True])
def test_unread_data_leave_a_doubt(tmp_path: Path, sender: str, heard: bool) -> None:
    """A receiver that ran out of memory may have refused all of it."""
    verdict, analysis = answer(outage(near=sender, sender=sender, heard=heard, unread=True), tmp_path)
    [finding] = judged(analysis, "TW313")
    assert (verdict.limit, verdict.confidence, finding.confidence) == ("path_outage", "possible", "possible")
    assert "refused all data" in finding.text
    assert "TcpExtTCPRcvQDrop" in (verdict.fix or "")
    assert "ran out of memory" in (finding.evidence.ruled_out or "")


@pytest.mark.parametrize(("dropped", "limit"), [(8, "receiver_memory"), (0, "path_outage")])
def test_the_receivers_counters_settle_the_doubt(tmp_path: Path, dropped: int, limit: str) -> None:
    """Seen at the sender: the receiver's kernel counted what it refused, or nothing."""
    told = {
        "ss_b.txt": sample("b", 0.1, "wscale:7,7 rto:240 rtt:100/1 mss:1460 cwnd:10"),
        "nstat_b.csv": f"t,TCPRcvQDrop,TCPInSegs\n1600000000.0,3,1\n1600000009.0,{3 + dropped},99\n",
    }
    analysis = outage(near="a", sender="a", unread=True).analyze(tmp_path, snapshots=told)
    verdict = analysis.connections[0].verdict
    assert verdict.limit == limit
    assert bool(judged(analysis, "TW313")) == (dropped == 0)
    if dropped:
        assert (verdict.code, verdict.owner, verdict.confidence) == ("TW211", "server_host", "certain")
        assert "TcpExtTCPRcvQDrop" not in (verdict.fix or ""), "its counters are known"


def test_single_losses_are_no_outage(tmp_path: Path) -> None:
    assert not judged(waits(5.0).analyze(tmp_path), "TW313")


def bursts(times: int, *, lossy: bool) -> Story:
    """Runs of losses that take four tries each, and between them rounds of four segments, the first lost or none."""
    story = Story().handshake(RTT_S, near="a")
    for _ in range(times):
        for _ in range(5):
            first = story.next["a"]
            story.burst("a", 4).wait(RTT_S)
            if lossy:
                for _ in range(3):
                    story.ack("b", first)
                story.step("a", "A", "len 1460", seq=first)
                story.wait(RTT_S)
            story.ack("b")
        first = story.next["a"]
        story.data("a", 1460)
        for pause_s in (0.3, 0.6, 1.2):
            story.wait(pause_s).step("a", "A", "len 1460", seq=first)
        story.wait(2.4).step("a", "A", "len 1460", seq=first)
        story.wait(RTT_S).ack("b")
    for _ in range(5):
        story.burst("a", 4).wait(RTT_S).ack("b")
    return story


@pytest.mark.parametrize("lossy", [False, True])
def test_several_on_a_path_that_loses_all_the_time_are_bursts(tmp_path: Path, lossy: bool) -> None:
    """As in lab world 2-025, where bursts of ten frames take the timer's tries one by one."""
    verdict, analysis = answer(bursts(3, lossy=lossy), tmp_path)
    assert bool(judged(analysis, "TW313")) == (not lossy)
    assert verdict.limit == ("path_loss" if lossy else "path_outage")
