"""Host data in tests of rules: texts of `ss`, `sysctl`, `nstat` and sockstat, by file name.

Addresses default to those of ladders.
"""

from __future__ import annotations

from collections.abc import Mapping

START = 1_600_000_000
A, B = "10.0.0.1:40000", "10.0.0.2:9000"
HEADER = "State Recv-Q Send-Q Local Address:Port Peer Address:Port"


def ss(
    local: str,
    peer: str,
    *tokens: str,
    times: tuple[float, ...] = (START + 0.05,),
    skmem: str = "r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0",
    state: str = "ESTAB",
) -> str:
    """Return a socket at some times."""
    lines = []
    for time in times:
        lines += [f"### {time:.6f}", HEADER, f"{state} 0 0 {local} {peer}"]
        lines.append(f"\t skmem:({skmem}) cubic rto:204 mss:1448 cwnd:10 {' '.join(tokens)}")
    return "\n".join(lines) + "\n"


def sysctl(**values: str) -> str:
    """Return settings below net.ipv4, as `sysctl -a` prints them."""
    return "".join(f"net.ipv4.{name} = {value}\n" for name, value in values.items())


def nstat(*samples: Mapping[str, int], start: int = START) -> str:
    """Return counters since boot, a second apart; a name in each sample is never 0."""
    lines = []
    for second, values in enumerate(samples):
        lines += [f"### {start + second}.0", "#kernel", "TcpInSegs 100 0.0"]
        lines += [f"{name} {value} 0.0" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def sockstat(*pages: int, start: int = START) -> str:
    """Return the memory of all TCP sockets, a second apart."""
    return "".join(
        f"### {start + second}.0\nTCP: inuse 3 orphan 0 tw 0 alloc 4 mem {each}\n" for second, each in enumerate(pages)
    )
