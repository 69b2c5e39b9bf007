"""Captures written as stories, for rules: who sends what and when, with automatic sequence numbers.

Takes calls in order of time; returns a ladder (tests/ladder.py), its packets, and the rules' findings. It keeps each
side's next sequence number and acknowledgment, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import ladder

import tcpwin
from tcpwin.limits import Finding, Findings, all_rules, check

A_PORT, B_PORT = 40_000, 80


@dataclass
class Story:
    """One connection seen at one point of the path.

    Attributes:
        now: seconds since the capture's start.
        window: each side's current raw window field.
        next: each side's next sequence number, as the ladder counts: 0 is the SYN.
        acked: what each side has acknowledged of the other.
    """

    now: float = 0.0
    window: dict[str, int] = field(default_factory=lambda: {"a": 64_240, "b": 65_160})
    next: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    acked: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    lines: list[str] = field(default_factory=list)
    frames: int = 0

    def wait(self, seconds: float) -> Story:
        """Let time pass."""
        self.now += seconds
        return self

    def setting(self, text: str) -> Story:
        """Add a setting of the ladder, such as ``port b 5201``."""
        self.lines.append(text)
        return self

    def step(self, side: str, flags: str, rest: str = "", *, seq: int | None = None, ack: int | None = None) -> int:
        """Add one segment in the ladder's notation; return its frame. Changes only the frame number."""
        other = "b" if side == "a" else "a"
        number = self.next[side] if seq is None else seq
        acked = f"ack {self.acked[side] if ack is None else ack} " if "A" in flags else ""
        self.lines.append(
            f"{self.now:.9f} {side} > {other} {flags} seq {number} {acked}win {self.window[side]} {rest}".rstrip()
        )
        self.frames += 1
        return self.frames

    def handshake(
        self,
        rtt: float = 0.04,
        *,
        options: tuple[str, str] = ("<mss 1460,sackOK,ws 7>", "<mss 1460,sackOK,ws 7>"),
        scaled: tuple[int, int] = (502, 509),
        near: str = "a",
    ) -> Story:
        """Add SYN, SYN/ACK, ACK; the capture is made at `near`. Windows are the `scaled` fields from then on."""
        self.step("a", "S", options[0])
        self.wait(rtt if near == "a" else 0.0)
        self.next["a"], self.acked["b"] = 1, 1
        self.step("b", "SA", options[1], seq=0, ack=1)
        self.next["b"], self.acked["a"] = 1, 1
        self.window["a"], self.window["b"] = scaled
        self.wait(rtt if near == "b" else 0.0)
        self.step("a", "A")
        return self

    def data(self, side: str, length: int = 1460, *, flags: str = "A", rest: str = "") -> int:
        """Add new data; return its frame."""
        frame = self.step(side, flags, f"len {length} {rest}")
        self.next[side] += length + flags.count("F")
        return frame

    def ack(self, side: str, upto: int | None = None, *, window: int | None = None, rest: str = "") -> int:
        """Add a bare ACK of everything (or up to a number) that the other side sent; return its frame."""
        if window is not None:
            self.window[side] = window
        self.acked[side] = self.next["b" if side == "a" else "a"] if upto is None else upto
        return self.step(side, "A", rest)

    def burst(self, side: str, segments: int, *, length: int = 1460, spacing: float = 0.0001) -> Story:
        """Add several consecutive new segments."""
        for _ in range(segments):
            self.data(side, length)
            self.wait(spacing)
        return self

    def close(self, rtt: float = 0.04, first: str = "a") -> Story:
        """Add FIN, FIN/ACK, ACK."""
        second = "b" if first == "a" else "a"
        self.step(first, "FA")
        self.next[first] += 1
        self.wait(rtt)
        self.acked[second] = self.next[first]
        self.step(second, "FA")
        self.next[second] += 1
        self.acked[first] = self.next[second]
        self.step(first, "A")
        return self

    @property
    def text(self) -> str:
        """Return the ladder."""
        return "A story.\n\n" + "\n".join(f"    {line}" for line in self.lines) + "\n"

    def write(self, folder: Path, name: str = "story") -> Path:
        """Write the capture."""
        path = folder / f"{name}.pcap"
        ladder.parse(self.text, name).write_pcap(path)
        return path

    def analyze(self, folder: Path, *, snapshots: Mapping[str, str] | None = None) -> tcpwin.Analysis:
        """Analyse the capture, with texts of snapshots by file name."""
        files = []
        for name, content in (snapshots or {}).items():
            (folder / name).write_text(content, encoding="utf8")
            files.append(folder / name)
        return tcpwin.analyze(self.write(folder), snapshots=files)


def closed_for(seconds: float) -> Story:
    """a sends 40 segments, 58,400 bytes; b closes its window between the halves."""
    story = Story().handshake()
    story.burst("a", 20).wait(0.04)
    story.ack("b", window=0)
    story.wait(seconds)
    story.ack("b", window=509)
    story.wait(0.04).burst("a", 20).wait(0.04)
    story.ack("b")
    return story.wait(0.1).close()


def judged(analysis: tcpwin.Analysis, code: str, thresholds: Mapping[str, float] | None = None) -> Findings:
    """Return the findings of one rule."""
    return check(analysis, chosen=[all_rules()[code]], thresholds=thresholds)


def blame(finding: Finding) -> tuple[str | None, str | None, str, str]:
    """Return direction, side, owner and confidence of a finding."""
    return finding.direction, finding.side, finding.owner, finding.confidence


def says(finding: Finding, *parts: str) -> bool:
    """Return whether a finding's text contains all of these: who, how much, how often."""
    missing = [part for part in parts if part not in finding.text]
    assert not missing, f"{finding.text!r} does not say {missing}"
    return True


def codes(analysis: tcpwin.Analysis) -> list[str]:
    """Return the codes of all findings of all rules."""
    return sorted(check(analysis).counts)


def cut(analysis: tcpwin.Analysis, expected: Iterable[str]) -> set[str]:
    """Return unexpected codes."""
    return set(codes(analysis)) - set(expected)
