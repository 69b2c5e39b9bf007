"""The window that Linux grants for a receive buffer, and the buffer that a window needs.

Memory also holds headers and half-empty pages, so the window is smaller than the buffer. Kernels before 6.6 assume a
fixed share, tcp_adv_win_scale; later ones measure it per connection (commit dfa2f0483360).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tcpwin.errors import ArgumentError
from tcpwin.kernel.defaults import SCALING_RATIO_SINCE, Kernel, kernel_defaults

ADV_WIN_SCALE_RANGE = range(-31, 32)
"""Values that the sysctl accepts (Documentation/networking/ip-sysctl.rst)."""
_RATIO_ONE = 256
"""TCP_RMEM_TO_WIN_SCALE is 8: ratios count 256ths (include/net/tcp.h)."""
_SKB_TRUESIZE_4096_BYTES = 4096 + 256 + 320
"""SKB_TRUESIZE(4096) on x86-64: a page, sk_buff and skb_shared_info, each to a multiple of 64 bytes."""

FIRST_RATIO = 1200 * _RATIO_ONE // _SKB_TRUESIZE_4096_BYTES
"""A connection's ratio before measurement, in 6.6 to 6.9: 1200 bytes of payload per page, 65/256."""
HALF_RATIO = _RATIO_ONE // 2
"""The same from 6.10 on (commit 697a6c8cec03), and in later stable releases of 6.6 and 6.9."""
_HALF_RATIO_SINCE: Kernel = (6, 10)


@dataclass(frozen=True, slots=True)
class AdvWinScale:
    """The model before 6.6: a share of the buffer by `net.ipv4.tcp_adv_win_scale`.

    Above 0 the overhead is 1/2^scale of the buffer; at 0 and below the window is 1/2^-scale of it
    (`tcp_win_from_space`, include/net/tcp.h).

    Raises:
        ArgumentError: the scale is not in -31 to 31.
    """

    scale: int

    def __post_init__(self) -> None:
        if self.scale not in ADV_WIN_SCALE_RANGE:
            raise ArgumentError(f"tcp_adv_win_scale is -31 to 31, not {self.scale}")

    @property
    def name(self) -> str:
        """Return the usual notation."""
        return f"tcp_adv_win_scale {self.scale}"

    @property
    def overhead(self) -> Fraction:
        """Return the memory assumed per byte of window."""
        if self.scale > 0:
            return Fraction(1 << self.scale, (1 << self.scale) - 1)
        return Fraction(1 << -self.scale)

    def window_from_space(self, space_bytes: int) -> int:
        """Return the window that a buffer allows."""
        space_bytes = max(space_bytes, 0)
        return space_bytes - (space_bytes >> self.scale) if self.scale > 0 else space_bytes >> -self.scale

    def space_from_window(self, window_bytes: int) -> int:
        """Return a buffer that allows a window: window × overhead, rounded up."""
        return ceil(max(window_bytes, 0) * self.overhead)


@dataclass(frozen=True, slots=True)
class ScalingRatio:
    """The model from 6.6 on: `ratio` 256ths of the buffer (`tcp_win_from_space`, commit dfa2f0483360).

    Raises:
        ArgumentError: the ratio is not in 1 to 255.
    """

    ratio: int

    def __post_init__(self) -> None:
        if not 1 <= self.ratio < _RATIO_ONE:
            raise ArgumentError(f"a scaling ratio is 1 to 255, not {self.ratio}")

    @classmethod
    def measured(cls, payload_bytes: int, truesize_bytes: int) -> ScalingRatio:
        """Return the ratio that the kernel derives from a packet's payload and memory (`tcp_measure_rcv_mss`)."""
        if payload_bytes < 0 or truesize_bytes < 1:
            raise ArgumentError(f"no packet has {payload_bytes} bytes of payload in {truesize_bytes} bytes of memory")
        return cls(min(max(payload_bytes * _RATIO_ONE // truesize_bytes, 1), _RATIO_ONE - 1))

    @property
    def name(self) -> str:
        """Return the usual notation."""
        return f"scaling_ratio {self.ratio}/256"

    @property
    def overhead(self) -> Fraction:
        """Return the memory assumed per byte of window."""
        return Fraction(_RATIO_ONE, self.ratio)

    def window_from_space(self, space_bytes: int) -> int:
        """Return the window that a buffer allows."""
        return max(space_bytes, 0) * self.ratio // _RATIO_ONE

    def space_from_window(self, window_bytes: int) -> int:
        """Return a buffer that allows a window: window × overhead, rounded up (the kernel rounds down)."""
        return ceil(max(window_bytes, 0) * self.overhead)


MemoryModel = AdvWinScale | ScalingRatio


def memory_models(kernel: Kernel | None, *, adv_win_scale: int | None = None) -> tuple[MemoryModel, ...]:
    """Return the models that a kernel may use, several if the version leaves it open.

    Args:
        kernel: None for unknown, which gives both models.
        adv_win_scale: the host's setting, by default the version's; relevant before 6.6 only.
    """
    if kernel is not None and kernel >= _HALF_RATIO_SINCE:
        return (ScalingRatio(HALF_RATIO),)
    if kernel is not None and kernel >= SCALING_RATIO_SINCE:
        return ScalingRatio(FIRST_RATIO), ScalingRatio(HALF_RATIO)
    scale = kernel_defaults(kernel).adv_win_scale if adv_win_scale is None else adv_win_scale
    fixed = AdvWinScale(1 if scale is None else scale)
    return (fixed,) if kernel is not None else (fixed, ScalingRatio(HALF_RATIO))


def measured_models(
    kernel: Kernel | None, *, buffer_bytes: int, window_bytes: int, adv_win_scale: int | None = None
) -> tuple[MemoryModel, ...]:
    """Return `memory_models` for a connection whose window reached its buffer's bound.

    From 6.6 on this reveals its measured ratio, window ÷ buffer in 256ths, if valid.

    Args:
        buffer_bytes: its maximum buffer: the third value of tcp_rmem.
        window_bytes: the largest offered window.
    """
    ratio = round(Fraction(window_bytes * _RATIO_ONE, buffer_bytes)) if buffer_bytes > 0 else 0
    if kernel is not None and kernel >= SCALING_RATIO_SINCE and 1 <= ratio < _RATIO_ONE:
        return (ScalingRatio(ratio),)
    return memory_models(kernel, adv_win_scale=adv_win_scale)
