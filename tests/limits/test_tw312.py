"""TW312 path-mtu: sizes that never arrive, and losses of other kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stories.shown import Shown
from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Finding, Verdict

RTT_S = 0.04


HAND_CHECKS = [
    {
        "capture": "OISF+suricata-verify/tests__filestore-5408__input.pcap",
        "connection": 0,
        "direction": "a_to_b",
        "frames": [9, 20],
        "saw": "9 and 20 are ICMP 3/4 with an MTU of 1500 that quote the client's segments; none was lost again.",
        "verdict": "right",
    }
]


def check_shown(shown: Shown) -> Iterator[str]:
    """The first frames are ICMP errors, or segments that were sent before the end of the wait."""
    if not shown.finding.evidence.frames:
        yield "no frame is shown"


def hole(
    *,
    near: str,
    sender: str = "b",
    large: int = 1460,
    small: int = 536,
    tries: int = 3,
    options: tuple[str, str] = ("<mss 1460,sackOK,ws 7>", "<mss 1460,sackOK,ws 7>"),
) -> Story:
    """The sender's large segment is lost, three times by its timer, and passes in small pieces; then all is small.

    The segment behind it is short and arrives, as SACK shows. Captured near the sender or in the middle.
    """
    story = Story().handshake(RTT_S, options=options, near=near)
    peer = "a" if sender == "b" else "b"
    back_s = RTT_S if near == sender else RTT_S / 2
    story.wait(RTT_S).data(peer, 200)
    story.wait(0.001).ack(sender)
    first = story.next[sender]
    story.data(sender, large)
    story.wait(0.0001).data(sender, 300)
    story.wait(back_s).ack(peer, first, rest=f"<sack {first + large}:{first + large + 300}>")
    pause_s = 0.3
    for _ in range(tries):
        story.wait(pause_s).step(sender, "A", f"len {large}", seq=first)
        pause_s *= 2
    story.wait(pause_s)
    at = first
    while at < first + large:
        length = min(small, first + large - at)
        story.step(sender, "A", f"len {length}", seq=at)
        at += length
        story.wait(0.0001)
    story.wait(back_s).ack(peer)
    for _ in range(20):
        story.burst(sender, 4, length=small).wait(back_s).ack(peer)
        story.wait(0.01)
    return story.close(RTT_S)


def verdict_of(story: Story, folder: Path) -> Verdict:
    return story.analyze(folder).connections[0].verdict


def waited_s(tries: int) -> float:
    """Sum of the timers: 0.3 s, doubling."""
    return 0.3 * (2 ** (tries + 1) - 1)


@pytest.mark.parametrize("sender", ["a", "b"])
@pytest.mark.parametrize("is_six", [False, True], ids=["IPv4", "IPv6"])
def test_large_segments_that_never_arrive(tmp_path: Path, sender: str, is_six: bool) -> None:
    story = hole(near=sender, sender=sender)
    if is_six:
        story.lines.insert(0, "ip 6")
    analysis = story.analyze(tmp_path)
    verdict = analysis.connections[0].verdict
    assert (verdict.limit, verdict.owner, verdict.is_problem) == ("path_mtu", "network", True)
    # And some rounds with the congestion window still small.
    assert waited_s(3) <= verdict.cost_ns / 1e9 <= waited_s(3) + 1
    assert verdict.fix
    assert all(words in verdict.fix for words in ("clamp the MSS", "ICMP", "tcp_mtu_probing", "is known to pass"))
    [finding] = judged(analysis, "TW312")
    values = finding.evidence.values
    assert (values["largest_arrived_bytes"], values["smallest_lost_bytes"], values["lost"]) == (536, 1460, 4)
    assert str(finding.severity) == "error"


def test_chance_takes_segments_of_any_size(tmp_path: Path) -> None:
    """A full segment is lost with all its copies for 2 s, and so are small ones: the path was down."""
    story = hole(near="b", small=1460)
    assert not judged(story.analyze(tmp_path), "TW312"), "it arrived in its full size"
    assert not judged(hole(near="b", tries=1).analyze(tmp_path), "TW312"), "twice is chance"


def super_segments(lost: int, size: int = 2920) -> Story:
    """Each super-segment is lost, and passes a timer later in pieces of one MSS; without SACK, as in a merged path."""
    story = Story().handshake(RTT_S, options=("<mss 1460>", "<mss 1460>"), scaled=(65_000, 65_000), near="b")
    story.wait(RTT_S).data("a", 200)
    story.ack("b")
    for _ in range(lost):
        first = story.next["b"]
        story.data("b", size)
        for place in range(0, size, 1460):
            story.wait(0.3).step("b", "A", "len 1460", seq=first + place)
            story.wait(RTT_S).ack("a", first + place + 1460)
        story.wait(0.001)
    return story


def test_merged_segments_that_no_device_forwards(tmp_path: Path) -> None:
    verdict = verdict_of(super_segments(12), tmp_path)
    assert (verdict.limit, verdict.owner) == ("path_mtu", "network")
    assert "GRO" in (verdict.fix or "")


def test_lost_super_segments_among_others_that_arrive(tmp_path: Path) -> None:
    story = super_segments(12)
    story.wait(0.01).data("b", 2920)
    story.wait(RTT_S).ack("a")
    assert not judged(story.analyze(tmp_path), "TW312")


def too_big(folder: Path, *, is_six: bool, delay_s: float) -> tcpwin.Analysis:
    """A router refuses two segments of 1,460 bytes for its MTU of 1,350 and the server sends them again in pieces."""
    from scapy.layers.inet import ICMP, IP, TCP
    from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
    from scapy.layers.l2 import Ether
    from scapy.utils import wrpcap

    a, b, router = ("2001:db8::1", "2001:db8::2", "2001:db8::9") if is_six else ("192.0.2.1", "192.0.2.2", "192.0.2.9")
    layer = IPv6 if is_six else IP
    packets = []

    def add(time_s: float, src: str, inner: object) -> None:
        packet = Ether() / layer(src=src, dst=b if src == a else a if src == b else b) / inner
        packet.time = 1_700_000_000 + time_s
        packets.append(packet)

    def segment(flags: str, seq: int, ack: int, length: int = 0, *, is_from_a: bool = False, mss: int = 0) -> TCP:
        ports = (40_000, 80) if is_from_a else (80, 40_000)
        return TCP(
            sport=ports[0],
            dport=ports[1],
            flags=flags,
            seq=seq,
            ack=ack,
            window=60_000,
            options=[("MSS", mss)] if mss else [],
        ) / (b"x" * length)

    add(0, a, segment("S", 100, 0, is_from_a=True, mss=1460))
    add(0, b, segment("SA", 500, 101, mss=1460))
    add(0.04, a, segment("A", 101, 501, is_from_a=True))
    add(0.05, a, segment("PA", 101, 501, 100, is_from_a=True))
    large = [segment("A", 501 + 1460 * number, 201, 1460) for number in range(2)]
    for each in large:
        add(0.051, b, each)
    for each in large:
        quoted = layer(src=b, dst=a) / each
        error = ICMPv6PacketTooBig(mtu=1350) if is_six else ICMP(type=3, code=4, nexthopmtu=1350)
        add(0.052, router, error / layer(bytes(quoted)[: 1200 if is_six else 28]))
    at = 501
    for length in (1290, 170, 1290, 170):
        add(0.053 + delay_s, b, segment("A", at, 201, length))
        at += length
    add(0.093 + delay_s, a, segment("A", 201, at, is_from_a=True))
    path = folder / "too-big.pcap"
    wrpcap(str(path), packets)
    return tcpwin.analyze(path)


@pytest.mark.parametrize("is_six", [False, True], ids=["IPv4", "IPv6"])
def test_icmp_errors_prove_it(tmp_path: Path, is_six: bool) -> None:
    analysis = too_big(tmp_path, is_six=is_six, delay_s=1.5)
    assert [(each.mtu, each.connection, each.direction) for each in analysis.icmp_errors] == [(1350, 0, "b")] * 2
    assert {each.text for each in analysis.icmp_errors} == {"packet too big" if is_six else "fragmentation needed"}
    verdict = analysis.connections[0].verdict
    assert (verdict.limit, verdict.confidence) == ("path_mtu", "certain")
    assert "1,350 bytes" in verdict.reason
    assert f"MSS to {1350 - (60 if is_six else 40):,}" in (verdict.fix or "")
    # From the first copy to its acknowledgment.
    assert verdict.cost_ns == pytest.approx(1.542e9, rel=0.01)


def test_discovery_that_works_costs_a_round_trip(tmp_path: Path) -> None:
    analysis = too_big(tmp_path, is_six=False, delay_s=0.0)
    [finding] = judged(analysis, "TW312")
    assert (str(finding.severity), finding.remedy) == ("info", None)
    assert not analysis.connections[0].verdict.is_problem


def test_a_finding_names_its_frames(tmp_path: Path) -> None:
    [finding] = judged(hole(near="b").analyze(tmp_path), "TW312")
    assert isinstance(finding, Finding)
    assert finding.evidence.frames[0] == 6


@pytest.mark.parametrize("large", [1460, 900])
@pytest.mark.parametrize("again", [True, False])
def test_a_retry_that_sticks_like_the_first_connection(tmp_path: Path, large: int, *, again: bool) -> None:
    """The server's only data is large and lost; the client asks again, over a connection that fares alike or better."""

    def ask(port: int, now: float, *, stuck: bool) -> Story:
        story = Story(now=now).setting(f"port a {port}").handshake(RTT_S, near="b")
        story.data("a", 200)
        story.wait(0.001).ack("b")
        first = story.next["b"]
        story.burst("b", 4, length=large)
        if not stuck:
            story.wait(RTT_S).ack("a")
            return story
        for number in range(5):
            story.wait(0.3 * 2**number).step("b", "A", f"len {large}", seq=first)
        return story

    paths = [ask(40_000, 0.0, stuck=True).write(tmp_path, "first"), ask(40_001, 10.0, stuck=again).write(tmp_path, "b")]
    analysis = tcpwin.analyze(paths)
    verdict = analysis.connections[0].verdict
    # Every path carries 900 bytes, and a box that drops one connection lets the next pass.
    is_size = again and large == 1460
    assert (verdict.limit == "path_mtu") is is_size, verdict.text
    assert bool(judged(analysis, "TW312")) is is_size
    if is_size:
        assert "less than 1,500 bytes" in next(iter(judged(analysis, "TW312"))).text
        assert "Clamp the MSS in both directions" in (verdict.fix or "")


def test_on_both_sides_of_the_router_that_refuses(tmp_path: Path) -> None:
    """As `tcpdump -i any` there captures it: what passes is seen twice, with the TTL one lower."""
    story = hole(near="b")
    lines = []
    for line in story.lines:
        words = line.split()
        lines.append(line)
        if "len 1460" not in line:
            lines.append(f"{float(words[0]) + 0.00001:.9f} {words[1]} > {words[3]} copy ttl 63")
    story.lines[:] = lines
    verdict = story.analyze(tmp_path).connections[0].verdict
    assert (verdict.limit, verdict.owner) == ("path_mtu", "network")
