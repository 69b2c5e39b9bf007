"""How Linux grows a receive buffer with its reader's consumption, about once per round trip.

In: the bytes read in a round trip and in the fastest earlier one, the model of the host's kernel. Out: the new buffer.
Source: `tcp_rcv_space_adjust`, net/ipv4/tcp_input.c of 6.1.192 and 6.12.117, and `tcp_rcvbuf_grow` there of 7.3.4. A
socket whose program set SO_RCVBUF, or a host with tcp_moderate_rcvbuf = 0, does not grow.
"""

from __future__ import annotations

from tcpwin.kernel.defaults import Kernel
from tcpwin.kernel.memory import AdvWinScale, MemoryModel

SLOW_START_ONLY_SINCE: Kernel = (6, 16)
"""From here on the buffer grows for slow start and holes, no longer for future losses (65c5287892e9)."""
_DOUBLED_AGAIN_SINCE: Kernel = (6, 18)
"""A reader with a rising rate gets more than double again (aa251c84636c); also in stable releases of 6.17."""
_LOW_RTT_SINCE: Kernel = (6, 19)
"""Over short round trips growth depends on the round trip (ecfea98b7d0d)."""
LOW_RTT_US = 1000
"""tcp_rcvbuf_low_rtt by default (`tcp_sk_init`, net/ipv4/tcp_ipv4.c of 7.3.4)."""
_CUSHION_SEGMENTS = 16
_BOOKKEEPING_BYTES = 256 + 320
"""sk_buff and skb_shared_info on x86-64, each to a multiple of 64 bytes."""
_MAX_TCP_HEADER_BYTES = 320
"""128 bytes and the longest headers below TCP in a distribution's configuration, rounded to a multiple of 64."""
_STEP_BYTES = 128


def grown_buffer_bytes(
    model: MemoryModel,
    *,
    buffer_bytes: int,
    taken_bytes: int,
    before_bytes: int,
    mss_bytes: int,
    rmem_max_bytes: int,
    kernel: Kernel | None = None,
    rtt_us: int | None = None,
    low_rtt_us: int = LOW_RTT_US,
    out_of_order_bytes: int = 0,
) -> int:
    """Return the receive buffer (`rb` of ss) after a round trip; it never shrinks here.

    Args:
        model: the kernel's model: before 6.6 the buffer is counted in whole segments, from 6.6 on in bytes of window.
        buffer_bytes: previous buffer.
        taken_bytes: bytes read in this round trip. From 6.16 on, and in later stable releases of 6.12, minus unread
            data, so that a slow reader's buffer does not grow.
        before_bytes: bytes read in the fastest round trip so far (`rcv_space` of ss); initially ten segments.
        mss_bytes: MSS announced by this end (`advmss` of ss).
        rmem_max_bytes: the third value of tcp_rmem.
        kernel: the host's kernel; None means before 6.16.
        rtt_us: round trip measured by the receiver (`rcv_rtt` of ss); None means `low_rtt_us` or more.
        low_rtt_us: tcp_rcvbuf_low_rtt.
        out_of_order_bytes: bytes from the first hole to the end of the data behind it; counted from 6.16 on.
    """
    if taken_bytes <= before_bytes:
        return buffer_bytes
    wanted = kernel or (0, 0)
    window = 2 * taken_bytes
    if wanted < SLOW_START_ONLY_SINCE:
        window += _CUSHION_SEGMENTS * mss_bytes
        window += 2 * (window * (taken_bytes - before_bytes) // before_bytes)
    elif wanted >= _LOW_RTT_SINCE and rtt_us is not None and rtt_us < low_rtt_us:
        window += window * rtt_us // low_rtt_us + out_of_order_bytes
    elif wanted >= _DOUBLED_AGAIN_SINCE:
        window += 2 * window * (taken_bytes - before_bytes) // before_bytes + out_of_order_bytes
    else:
        window += out_of_order_bytes
    return max(buffer_bytes, min(_memory_of(model, window, mss_bytes), rmem_max_bytes))


def _memory_of(model: MemoryModel, window_bytes: int, mss_bytes: int) -> int:
    if not isinstance(model, AdvWinScale):
        # `tcp_space_from_win`, which rounds down.
        return (window_bytes << 8) // model.ratio
    memory = mss_bytes + _MAX_TCP_HEADER_BYTES + _BOOKKEEPING_BYTES
    while model.window_from_space(memory) < mss_bytes:
        memory += _STEP_BYTES
    return window_bytes // mss_bytes * memory
