"""Why a receiver's window stopped growing, and the settings that let it grow.

In: a case, with the receiver's settings and samples if available. Out: Bound, lines for sysctl.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import best_goodput_bps
from tcpwin.limits.evidence.window import stood_still
from tcpwin.limits.finding import Remedy

if TYPE_CHECKING:
    from tcpwin.hosts import Host, SocketSample
    from tcpwin.kernel import Kernel

RMEM = "net.ipv4.tcp_rmem"
MODERATE = "net.ipv4.tcp_moderate_rcvbuf"
NEAR = 0.1
"""Windows are whole segments and whole units of the scale: within 10 % counts as equal."""
ROUND_TRIPS = 10
"""Autotuning runs once per round trip (`tcp_rcv_space_adjust`, net/ipv4/tcp_input.c); after this many it is stuck."""
GROWTH = 4
"""Factor by which the suggested settings exceed the present window: two doublings."""
MAX_SETTING_BYTES = (1 << 31) - 1


class Bound(NamedTuple):
    """The limit that kept a window from growing.

    Attributes:
        cause: ``rmem`` (it reached what the third value of tcp_rmem allows), ``fixed`` (SO_RCVBUF), ``off``
            (tcp_moderate_rcvbuf is 0) or ``unknown`` (it never grew above its first size).
        buffer_bytes: that third value, or the socket's fixed buffer; None if unknown.
    """

    cause: str
    buffer_bytes: int | None = None


def find_bound(case: Case) -> Bound | None:
    """Return what kept the window from growing, or None if it grew or had no time to."""
    data, host = case.data, case.host(case.receiver)
    first, most, rtt_ns = data.receive_window_initial_bytes, data.receive_window_max_bytes, case.connection.path_rtt_ns
    if (
        not first
        or not most
        or not rtt_ns
        or not stood_still(data)
        or data.first_data_ns is None
        or data.last_data_ns is None
    ):
        return None
    if data.last_data_ns - data.first_data_ns < ROUND_TRIPS * rtt_ns:
        return None
    settings = None if host is None else host.settings
    rmem = None if settings is None else settings.numbers(RMEM)
    fixed = _fixed_buffer(case.sockets(case.receiver))
    # Without the settings it may be a size that autotuning reached.
    if fixed is not None and rmem is not None and fixed not in rmem:
        return Bound("fixed", fixed)
    if rmem is not None and len(rmem) == 3:
        from tcpwin.kernel import adv_win_scale_of, memory_models

        models = memory_models(kernel_at(host), adv_win_scale=adv_win_scale_of(settings))
        if any(abs(most - model.window_from_space(rmem[2])) <= NEAR * most for model in models):
            return Bound("rmem", rmem[2])
    if most > first * (1 + NEAR):
        return None
    if settings is not None and settings.number(MODERATE) == 0:
        return Bound("off")
    return Bound("unknown")


def kernel_at(host: Host | None) -> Kernel | None:
    """Return a host's kernel version, or None if unknown."""
    if host is None:
        return None
    from tcpwin.kernel import kernel_of, parse_kernel

    try:
        return parse_kernel(host.kernel.release) if host.kernel is not None else kernel_of(host.settings)
    except ValueError:
        return kernel_of(host.settings)


def larger_buffer(case: Case) -> tuple[str, ...]:
    """Return the receive memory setting that every rule on a small window recommends.

    It lets the window grow to the largest of `GROWTH` times its maximum so far, the need of the best rate between the
    two hosts, and the kernel's default. Empty if the host already allows that.
    """
    from tcpwin.kernel import adv_win_scale_of, kernel_defaults, memory_models

    host = case.host(case.receiver)
    settings = None if host is None else host.settings
    kernel = kernel_at(host)
    rmem = None if settings is None else settings.numbers(RMEM)
    is_known = rmem is not None and len(rmem) == 3
    least, start, now = rmem if rmem is not None and is_known else kernel_defaults(kernel).tcp_rmem_bytes
    model = memory_models(kernel, adv_win_scale=adv_win_scale_of(settings))[0]
    best_bytes = best_goodput_bps(case) * (case.connection.path_rtt_ns or 0) / 8e9
    wanted = model.space_from_window(max(GROWTH * (case.data.receive_window_max_bytes or 0), round(best_bytes)))
    most = min(max(wanted, now, kernel_defaults(kernel).tcp_rmem_bytes[2]), MAX_SETTING_BYTES)
    if is_known and most == now:
        return ()
    return (f'sysctl -w {RMEM}="{least} {start} {most}"',)


def more_overhead(host: Host | None, where: str, measured: float = 0.0) -> Remedy:
    """Return the advice to assume more memory per byte at a receiver: the measured overhead, or Cloudflare's 4."""
    from tcpwin.kernel import SCALING_RATIO_SINCE, AdvWinScale, adv_win_scale_of, kernel_defaults, memory_models

    kernel = kernel_at(host)
    if kernel is not None and kernel >= SCALING_RATIO_SINCE:
        return Remedy(
            f"Give {where} more receive memory, or send it less data: from Linux 6.6 on the kernel measures "
            "the overhead itself, and tcp_adv_win_scale has no effect.",
        )
    settings = None if host is None else host.settings
    rmem = None if settings is None else settings.numbers(RMEM)
    least, start, most = rmem if rmem is not None and len(rmem) == 3 else kernel_defaults(kernel).tcp_rmem_bytes
    scale = next((scale for scale in (1, -2) if AdvWinScale(scale).overhead >= measured > 0), -2)
    now = memory_models(kernel, adv_win_scale=adv_win_scale_of(settings))[0].window_from_space(most)
    most = min(max(AdvWinScale(scale).space_from_window(now), most), MAX_SETTING_BYTES)
    return Remedy(
        f"On {where}, count {AdvWinScale(scale).overhead} bytes of memory per byte of payload, and raise the "
        "largest buffer so that the window stays as large.",
        settings=(
            f"sysctl -w net.ipv4.tcp_adv_win_scale={scale}",
            f'sysctl -w {RMEM}="{least} {start} {most}"',
        ),
        side_effects="This holds for all connections of the host; each may take that much memory.",
    )


def _fixed_buffer(samples: Sequence[SocketSample]) -> int | None:
    """Return the receive buffer that stayed the same in at least three samples while data arrived."""
    told = [each for each in samples if each.rcvbuf_bytes and each.state == "ESTAB"]
    if len(told) < 3 or (told[-1].bytes_received or 0) <= (told[0].bytes_received or 0):
        return None
    sizes = {each.rcvbuf_bytes for each in told}
    return sizes.pop() if len(sizes) == 1 else None
