"""Limits of a transfer according to other tools: the kernel's chronographs, tcptrace, tshark.

Takes a capture in which the server sends, or `ss` samples at the sender, and returns the limits that the output leaves
possible, or none. None of these tools names a limit: each rule below is the conclusion of a careful reader, and an
answer counts as right if any remaining limit is the right one.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

RECEIVER = frozenset({"receiver_window", "receiver_application"})
NETWORK = frozenset({"path_rate", "path_loss", "path_policer", "congestion_control"})
APPLICATION = frozenset({"sender_application", "idle_restart", "none"})
SEND_BUFFER = frozenset({"send_buffer"})
NOTHING: frozenset[str] = frozenset()
RESENT_SHARE = 0.005
"""Share of the data segments: a reader would not blame fewer than one in two hundred."""
FULL_SHARE = 0.9
"""Share of the largest window at which the flight fills it, to within one or two segments."""
IDLE_SHARE = 0.2
"""Share of the time: a reader would notice this much silence."""
_CHRONOGRAPH = re.compile(r"\b(busy|rwnd_limited|sndbuf_limited):(\d+)ms")
_SAMPLE = re.compile(r"^### ", re.MULTILINE)
_TCPTRACE = {
    "zero": r"zero win adv: +(\d+) times",
    "window": r"max win adv: +(\d+) bytes",
    "resent": r"rexmt data pkts: +(\d+)",
    "data": r"actual data pkts: +(\d+)",
    "flight": r"max owin: +(\d+) bytes",
    "idle_ms": r"idletime max: +([\d.]+) ms",
}
_MARKS = ("zero_window", "window_full", "retransmission")


def by_chronographs(samples: str, completion_ns: int) -> frozenset[str]:
    """Judge by busy, rwnd_limited and sndbuf_limited in the last sample of the sender's socket that has them."""
    counted: dict[str, int] = {}
    for sample in _SAMPLE.split(samples):
        found = {name: int(ms) for name, ms in _CHRONOGRAPH.findall(sample)}
        if found.get("busy", 0) >= counted.get("busy", 0):
            counted = found or counted
    if not counted:
        return NOTHING
    busy, window, buffer = (counted.get(name, 0) for name in ("busy", "rwnd_limited", "sndbuf_limited"))
    parts = {
        RECEIVER: window,
        SEND_BUFFER: buffer,
        NETWORK: busy - window - buffer,
        APPLICATION: completion_ns // 1_000_000 - busy,
    }
    return max(parts, key=lambda limits: parts[limits])


def by_tcptrace(capture: Path) -> frozenset[str]:
    """Judge by the first connection of `tcptrace -lW`, whose second column has the server's data."""
    text = _said("tcptrace", "-lW", str(capture))
    both = {name: re.findall(words, text)[:2] for name, words in _TCPTRACE.items()}
    if any(len(found) < 2 and name != "idle_ms" for name, found in both.items()):
        return NOTHING
    elapsed = re.search(r"elapsed time: +(\d+):(\d+):([\d.]+)", text.partition("TCP connection 1:")[2])
    elapsed_s = (
        sum(float(part) * unit for part, unit in zip(elapsed.groups(), (3600, 60, 1), strict=True)) if elapsed else 0
    )
    sent = {name: float(both[name][1]) for name in ("resent", "data", "flight")}
    figures = {name: float(both[name][0]) for name in ("zero", "window")}
    idle_s = max(map(float, both["idle_ms"]), default=0.0) / 1000
    return _read(
        closed=figures["zero"],
        full=sent["flight"] >= FULL_SHARE * figures["window"],
        resent=sent["resent"] >= RESENT_SHARE * sent["data"] > 0,
        idle=idle_s >= IDLE_SHARE * elapsed_s,
    )


def by_tshark(capture: Path) -> frozenset[str]:
    """Judge by the marks of `tcp.analysis` and the longest gap between two packets."""
    fields = [f"tcp.analysis.{mark}" for mark in _MARKS]
    words = [word for field in ("frame.time_relative", "tcp.len", "tcp.srcport", *fields) for word in ("-e", field)]
    text = _said("tshark", "-r", str(capture), "-Y", "tcp.stream == 0", "-T", "fields", *words)
    rows = [line.split("\t") for line in text.splitlines()]
    if not rows:
        return NOTHING
    times_s = [float(row[0]) for row in rows]
    gaps_s = [later - earlier for earlier, later in pairwise(times_s)]
    counts = {mark: sum(bool(row[3 + place]) for row in rows) for place, mark in enumerate(_MARKS)}
    data = sum(row[1] not in ("", "0") for row in rows)
    return _read(
        closed=counts["zero_window"],
        full=counts["window_full"] > 0,
        resent=counts["retransmission"] >= RESENT_SHARE * data > 0,
        idle=max(gaps_s, default=0.0) >= IDLE_SHARE * times_s[-1],
    )


def _read(*, closed: float, full: bool, resent: bool, idle: bool) -> frozenset[str]:
    """Judge in a reader's order: a closed or full window, losses, silences, otherwise the network."""
    if closed or full:
        return RECEIVER
    if resent:
        return NETWORK
    return APPLICATION if idle else NETWORK


def _said(*argv: str) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout


def groups_of(limits: Sequence[str]) -> frozenset[str]:
    """Return all limits in the groups of these limits: the most precise answer of a tool that only distinguishes
    groups.
    """
    groups = (RECEIVER, NETWORK, APPLICATION, SEND_BUFFER)
    return frozenset().union(*(group for group in groups if group & set(limits)))
