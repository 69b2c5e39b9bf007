"""Stories of devices on the path: resets in a host's name, dropped connections, foreign timers, and outages."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story

import tcpwin
from tcpwin.limits import Verdict

RTT_S = 0.04


def exchange(*, near: str = "a", times: int = 4, six: bool = False) -> Story:
    """Requests and answers, captured at one end."""
    story = Story()
    if six:
        story.lines.insert(0, "ip 6")
    story.handshake(RTT_S, near=near)
    there_s, back_s = (RTT_S, 0.0) if near == "a" else (0.001, RTT_S)
    for _ in range(times):
        story.data("a", 300, flags="PA")
        story.wait(there_s).acked["b"] = story.next["a"]
        story.data("b", 900, flags="PA")
        story.wait(back_s).ack("a")
        story.wait(0.05)
    return story


def reset(story: Story, by: str, after_s: float, rest: str = "") -> Story:
    """The other side sends data, and a RST answers it after a time."""
    asker = "a" if by == "b" else "b"
    story.data(asker, 300, flags="PA")
    story.wait(after_s)
    story.acked[by] = story.next[asker]
    story.step(by, "RA", rest)
    return story


def answer(story: Story, folder: Path) -> tuple[Verdict, tcpwin.Analysis]:
    analysis = story.analyze(folder)
    return analysis.connections[0].verdict, analysis


def codes(analysis: tcpwin.Analysis) -> set[str]:
    return {each.code for each in analysis.findings}


def race(*, near: str, crossed: bool) -> Story:
    """After five seconds, a request and a FIN; crossed, or the FIN in answer to the request."""
    story = exchange(near=near).wait(5)
    story.data("a", 310, flags="PA")
    story.wait(0.0002 if crossed else RTT_S)
    if not crossed:
        story.acked["b"] = story.next["a"]
    story.step("b", "FA")
    story.next["b"] += 1
    story.wait(RTT_S)
    story.step("b", "R")
    return story


def storm(apart: int) -> Story:
    story = Story().setting("port a 623").setting("port b 2049")
    for _ in range(200):
        story.step("b", "A", seq=1, ack=1 + apart)
        story.wait(0.0001).step("a", "A", seq=1 + 2 * apart, ack=2)
        story.wait(0.0004)
    return story


def waits(pause_s: float, tries: int = 4) -> Story:
    """Seven segments, of which two arrive; each of the others comes after a pause, and its ACK within a round trip."""
    story = Story().handshake(RTT_S, options=("<mss 1460>", "<mss 1460>"), scaled=(60_000, 60_000), near="b")
    first = story.next["b"]
    story.burst("b", tries + 2, spacing=0.00001).wait(RTT_S)
    story.ack("a", first + 2 * 1460)
    for number in range(tries):
        story.wait(pause_s).step("b", "A", "len 1460", seq=first + 1460 * (number + 2))
        story.wait(RTT_S).ack("a", first + 1460 * (number + 3))
    return story


def outage(*, near: str, sender: str, heard: bool = False, unread: bool = False) -> Story:
    """Three rounds pass; then all is lost for 3 s, and the timer's fourth try arrives; then three more rounds.

    unread: the window shrinks before, because the receiver's application does not read.
    """
    story = Story().handshake(RTT_S, near=near)
    peer = "a" if sender == "b" else "b"
    for number in range(3):
        window = {"window": 502 - 80 * number} if unread else {}
        story.burst(sender, 4).wait(RTT_S).ack(peer, **window)
    first = story.next[sender]
    story.burst(sender, 4)
    for pause_s in (0.3, 0.6, 1.2):
        story.wait(pause_s).step(sender, "A", "len 1460", seq=first)
        if heard:
            story.wait(0.15)
            story.data(peer, 20)
    story.wait(1.0).step(sender, "A", "len 1460", seq=first)
    story.wait(RTT_S).ack(peer, first + 1460)
    for number in (1, 2, 3):
        story.step(sender, "A", "len 1460", seq=first + 1460 * number)
    story.wait(RTT_S).ack(peer)
    for _ in range(3):
        story.burst(sender, 4).wait(RTT_S).ack(peer)
    return story


def two_connections(folder: Path, *, alive: bool) -> tcpwin.Analysis:
    """The client's answers stop on one connection; on another, opened later, they come, or it is not there."""
    first = exchange(near="b")
    data = first.next["b"]
    first.data("b", 1460)
    for pause_s in (0.3, 0.6, 1.2, 2.4, 4.8):
        first.wait(pause_s).step("b", "A", "len 1460", seq=data)
    path = first.write(folder, "first")
    if not alive:
        return tcpwin.analyze(path)
    second = Story(now=2.0).setting("port a 40001")
    second.handshake(RTT_S, near="b").data("a", 300)
    second.wait(0.001).ack("b")
    other = second.write(folder, "second")
    return tcpwin.analyze([path, other])
