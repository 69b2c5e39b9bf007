"""The memory of one socket, and of all TCP sockets of a host, related to their windows.

In: a sample of `ss -tm` or /proc/net/sockstat, and the host's settings. Out: numbers derived from them; None if the
sample lacks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tcpwin.kernel.defaults import Kernel, parse_kernel
from tcpwin.kernel.memory import ADV_WIN_SCALE_RANGE, MemoryModel, memory_models

if TYPE_CHECKING:
    from tcpwin.hosts import MemorySample, SettingsSample, SocketSample

Pressure = Literal["low", "normal", "pressure", "exhausted"]


@dataclass(frozen=True, slots=True)
class AllowedWindow:
    """The window that a buffer allows according to one model.

    Attributes:
        model: the model with its setting.
        window_bytes: the window that the whole buffer allows.
        assumed_overhead: memory that the model assumes per byte of payload.
    """

    model: MemoryModel
    window_bytes: int
    assumed_overhead: float


@dataclass(frozen=True, slots=True)
class ReceiveMemory:
    """The receive memory of one socket.

    Attributes:
        kernel: the assumed version; None if unknown, and `allowed` then has both models.
        rmem_alloc_bytes: memory in use, `r` of skmem: queued payload, in order or not, with its overhead.
        rcvbuf_bytes: memory allowed, `rb` of skmem (sk_rcvbuf).
        recv_q_bytes: in-order payload that the application has not read.
        fill: `r` ÷ `rb`; above 1 the kernel first collapses, then drops (`tcp_prune_queue`, net/ipv4/tcp_input.c).
        is_over: whether `r` exceeds `rb`. One packet too many is normal, because the check precedes the charge.
        measured_overhead: `r` ÷ Recv-Q, memory for one byte of payload; None if Recv-Q is 0. It is too high while
            packets wait out of order, because they count in `r` but not in Recv-Q.
        measured_window_bytes: the payload that `rb` holds at the measured overhead.
        allowed: the window that `rb` allows, by each model that the kernel may use.
        rcv_ssthresh_bytes: the window that the kernel currently allows; it grows towards the maximum.
        rcv_wnd_bytes: the window offered.
    """

    kernel: Kernel | None
    rmem_alloc_bytes: int | None
    rcvbuf_bytes: int | None
    recv_q_bytes: int | None
    fill: float | None
    is_over: bool | None
    measured_overhead: float | None
    measured_window_bytes: int | None
    allowed: tuple[AllowedWindow, ...]
    rcv_ssthresh_bytes: int | None
    rcv_wnd_bytes: int | None


def receive_memory(
    sample: SocketSample, *, settings: SettingsSample | None = None, kernel: Kernel | None = None
) -> ReceiveMemory:
    """Read the receive memory of a socket.

    Args:
        sample: a sample with skmem (`ss -m`); otherwise only its other values are returned.
        settings: settings of the same host: tcp_adv_win_scale, and the kernel if `kernel` is not given.
        kernel: version of the host's kernel.
    """
    kernel = kernel or kernel_of(settings)
    used, buffer = sample.rmem_alloc_bytes, sample.rcvbuf_bytes
    # On a listening socket `ss` prints connections in this column; readers leave recv_q_bytes empty there.
    waiting = sample.recv_q_bytes
    return ReceiveMemory(
        kernel=kernel,
        rmem_alloc_bytes=used,
        rcvbuf_bytes=buffer,
        recv_q_bytes=waiting,
        fill=_ratio(used, buffer),
        is_over=used > buffer if used is not None and buffer is not None else None,
        measured_overhead=_ratio(used, waiting),
        measured_window_bytes=buffer * waiting // used if buffer is not None and waiting and used else None,
        allowed=() if buffer is None else _allowed(buffer, kernel, settings),
        rcv_ssthresh_bytes=sample.rcv_ssthresh_bytes,
        rcv_wnd_bytes=sample.rcv_wnd_bytes,
    )


def kernel_of(settings: SettingsSample | None) -> Kernel | None:
    """Return the version in ``kernel.osrelease`` of a dump of settings; None if it is missing or invalid."""
    try:
        return None if settings is None else parse_kernel(settings.values.get("kernel.osrelease", ""))
    except ValueError:
        return None


def adv_win_scale_of(settings: SettingsSample | None) -> int | None:
    """Return `net.ipv4.tcp_adv_win_scale` of a dump of settings; None if it is missing or out of range."""
    scale = None if settings is None else settings.number("net.ipv4.tcp_adv_win_scale")
    return scale if scale in ADV_WIN_SCALE_RANGE else None


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of all TCP sockets of a host against `net.ipv4.tcp_mem`.

    Attributes:
        tcp_memory_bytes: memory in use.
        low_bytes, pressure_bytes, high_bytes: the three bounds; None if the settings lack them.
        share: memory in use ÷ the highest bound.
        state: "low": below the first bound, no socket is held back; "normal": below the second; "pressure": above it,
            buffers stop growing and windows shrink; "exhausted": above the third, memory is refused and packets drop
            (`__sk_mem_raise_allocated`, net/core/sock.c). Pressure lasts until memory falls below the first bound.
    """

    tcp_memory_bytes: int | None
    low_bytes: int | None
    pressure_bytes: int | None
    high_bytes: int | None
    share: float | None
    state: Pressure | None


def host_memory(sample: MemorySample, *, settings: SettingsSample | None = None) -> HostMemory:
    """Compare the memory of all TCP sockets (``TCP: … mem`` of /proc/net/sockstat) with tcp_mem; both are in pages."""
    bounds = None if settings is None else settings.numbers("net.ipv4.tcp_mem")
    pages = sample.tcp_memory_pages
    if bounds is None or len(bounds) != 3:
        return HostMemory(sample.tcp_memory_bytes, None, None, None, None, None)
    low, pressure, high = bounds
    state: Pressure | None = None
    if pages is not None:
        state = (
            "low" if pages <= low else "normal" if pages <= pressure else "pressure" if pages <= high else "exhausted"
        )
    return HostMemory(
        tcp_memory_bytes=sample.tcp_memory_bytes,
        low_bytes=low * sample.page_size_bytes,
        pressure_bytes=pressure * sample.page_size_bytes,
        high_bytes=high * sample.page_size_bytes,
        share=_ratio(pages, high),
        state=state,
    )


def _ratio(part: int | None, whole: int | None) -> float | None:
    if part is None or not whole:
        return None
    try:
        return part / whole
    except OverflowError:
        return None


def _allowed(buffer_bytes: int, kernel: Kernel | None, settings: SettingsSample | None) -> tuple[AllowedWindow, ...]:
    return tuple(
        AllowedWindow(model, model.window_from_space(buffer_bytes), float(model.overhead))
        for model in memory_models(kernel, adv_win_scale=adv_win_scale_of(settings))
    )
