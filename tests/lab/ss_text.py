"""Samples of one TCP socket from a lab run's ss file, as ground truth.

Reads the text of `ss -tmin` runs, each after a line `### EPOCH`, and returns Samples in order of time. Only needed
tokens are interpreted; a token that ss omits when zero reads as zero (iproute2 misc/ss.c).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

MARK = "### "
SKMEM = re.compile(r"([a-z]+)(\d+)")


@dataclass(frozen=True)
class Sample:
    """The kernel's values of one socket at one time.

    Attributes:
        recv_q, send_q: bytes not read by the application; bytes not yet acknowledged or sent.
        skmem: skmem by letter, such as `t`: memory of packets in the queues below TCP.
        tokens: `name:value` tokens as text; a bare word has the value "".
    """

    time_ns: int
    state: str
    local_port: int
    peer_port: int
    recv_q: int
    send_q: int
    skmem: dict[str, int]
    tokens: dict[str, str]

    def number(self, token: str) -> int:
        """Return a token's value, zero if ss omits it."""
        return int(self.tokens.get(token, "0"))

    @property
    def window_scales(self) -> tuple[int, int] | None:
        """Return the shifts (of the peer's windows, of our own), or None without window scaling."""
        if "wscale" not in self.tokens:
            return None
        peer, own = self.tokens["wscale"].split(",")
        return int(peer), int(own)


def read_samples(text: str) -> list[Sample]:
    """Read every socket of every run of ss."""
    samples = []
    time_ns = 0
    lines = text.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith(MARK):
            time_ns = int(Decimal(line.removeprefix(MARK)).scaleb(9))
        elif line[:1].isalpha() and not line.startswith("State"):
            samples.append(_sample(time_ns, line.split(), after.split() if after.startswith("\t") else []))
    return samples


def _sample(time_ns: int, columns: list[str], details: list[str]) -> Sample:
    state, recv_q, send_q, local, peer = columns[:5]
    tokens = {name: value for name, _, value in (word.partition(":") for word in details)}
    skmem = {letter: int(value) for letter, value in SKMEM.findall(tokens.pop("skmem", ""))}
    ports = [int(address.rpartition(":")[2]) for address in (local, peer)]
    return Sample(time_ns, state, ports[0], ports[1], int(recv_q), int(send_q), skmem, tokens)
