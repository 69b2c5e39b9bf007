"""Stories of receive windows, and host data on them: rounds of data that fill a window, samples of sockets."""

from __future__ import annotations

from collections.abc import Sequence

from ladder import ADDRESSES, START_NS
from stories.story import Story

import tcpwin
from tcpwin.limits import Finding, all_rules, check

A_PORT, B_PORT = 40_000, 9_000
"""The ladder's addresses."""
NO_SCALE = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")


def scaled(shift: int, *, a: int = 7) -> tuple[str, str]:
    """Return the options of both SYNs: the shift of b's windows, and of a's."""
    return f"<mss 1460,sackOK,ws {a}>", f"<mss 1460,sackOK,ws {shift}>"


def full(window_bytes: int, mss_bytes: int = 1460) -> list[int]:
    """Return segments that fill a window to its last byte."""
    segments, rest = divmod(window_bytes, mss_bytes)
    return [mss_bytes] * segments + ([rest] if rest else [])


def rounds(
    story: Story, count: int, sizes: Sequence[int], *, rtt: float = 0.04, sender: str = "a", window: int | None = None
) -> Story:
    """Repeat: send all these segments at once, and a round trip later one ACK of all of them."""
    receiver = "b" if sender == "a" else "a"
    for _ in range(count):
        for size in sizes:
            story.data(sender, size)
        story.wait(rtt)
        story.ack(receiver, window=window)
    return story


def sample(side: str, seconds: float, tokens: str, *, recv_q: int = 0, skmem: str = "") -> str:
    """Return one sample of `ss -tinm` of a side's socket, this long after the story began, by the same clock."""
    own, peer = f"{ADDRESSES[4]['a']}:{A_PORT}", f"{ADDRESSES[4]['b']}:{B_PORT}"
    if side == "b":
        own, peer = peer, own
    time_ns = START_NS + round(seconds * 1e9)
    memory = f"skmem:({skmem}) " if skmem else ""
    return (
        f"### {time_ns // 10**9}.{time_ns % 10**9:09}\n"
        f"State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
        f"ESTAB {recv_q} 0 {own} {peer}\n\t {memory}cubic {tokens}\n"
    )


def one(analysis: tcpwin.Analysis, code: str) -> Finding:
    """Return the only finding of a rule."""
    [finding] = check(analysis, chosen=[all_rules()[code]])
    return finding


def codes_on_windows(analysis: tcpwin.Analysis) -> list[str]:
    """Return the codes of the rules on scaling and on the receiver that find anything."""
    return sorted(code for code in check(analysis).counts if code.startswith(("TW1", "TW2")))
