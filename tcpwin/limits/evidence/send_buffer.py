"""The send memory setting that every rule on a small send buffer recommends.

In: a case, and the largest buffer seen. Out: a setting, the same for every rule. It judges nothing.
"""

from __future__ import annotations

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import best_goodput_bps
from tcpwin.limits.evidence.sockets import LARGEST

WMEM = "net.ipv4.tcp_wmem"
DEFAULT_WMEM = (4096, 16_384, 4_194_304)
"""net.ipv4.tcp_wmem of Linux (Documentation/networking/ip-sysctl.rst)."""
GROWTH = 2
MAX_SETTING_BYTES = (1 << 31) - 1
"""The kernel keeps it in a signed int."""


def larger_send_buffer(case: Case, buffer_bytes: int) -> tuple[str, ...]:
    """Return the setting, or nothing if the host already has it.

    It lets the buffer grow to the largest of `GROWTH` times its maximum so far, the need of the best rate between the
    two hosts over a round trip (with the kernel's factor), and the kernel's default.

    Args:
        buffer_bytes: the largest seen, or 0.
    """
    from tcpwin.kernel import SEND_BUFFER_FACTOR

    host = case.host(case.sender)
    known = host.settings.numbers(WMEM) if host is not None and host.settings is not None else None
    is_known = known is not None and len(known) == len(DEFAULT_WMEM)
    least, default, now = known if known is not None and is_known else DEFAULT_WMEM
    carried = round(SEND_BUFFER_FACTOR * best_goodput_bps(case) * (case.connection.path_rtt_ns or 0) / 8e9)
    wanted = max(DEFAULT_WMEM[2], GROWTH * min(now, LARGEST), GROWTH * buffer_bytes, carried)
    most = min(wanted, max(MAX_SETTING_BYTES, now))
    if is_known and most == now:
        return ()
    return (f'sysctl -w {WMEM}="{least} {default} {most}"',)
