"""Settings for Cloudflare's path, a home connection, and a path that no host can fill."""

from fractions import Fraction

import pytest

from tcpwin.kernel import AdvWinScale, Defaults, Plan, Reach, ScalingRatio, plan

MS, MBIT, MIB = 10**6, 10**6, 1 << 20
SEND_NOTE = (
    "The send buffer is 2 × the window, the kernel's own factor (3 with BBR): "
    "large segments need less, small writes more."
)
LIMITS_NOTE = (
    "net.core.rmem_max and wmem_max bound only SO_RCVBUF and SO_SNDBUF, which switch autotuning off for the socket."
)
RATIO_NOTE = (
    "From 6.6 on the kernel measures the share of payload per connection; 128/256 is assumed here. "
    "A connection's ratio is 256 × Recv-Q ÷ r of `ss -tm`."
)


def test_cloudflares_path() -> None:
    """300 ms × 3500 Mbit/s with kernel 5.15 and tcp_adv_win_scale -2: four times the window."""
    assert plan(300 * MS, 3500 * MBIT, kernel=(5, 15), adv_win_scale=-2) == Plan(
        rtt_ns=Fraction(300 * MS),
        rate_bps=Fraction(3500 * MBIT),
        kernel=(5, 15),
        model=AdvWinScale(-2),
        window_bytes=131_250_000,
        mss_bytes=1448,
        segments=90_642,
        packets=87_500,
        smallest_shift=11,
        offered_shift=13,
        receive_buffer_bytes=525_000_000,
        send_buffer_bytes=262_500_000,
        defaults=Defaults((4, 20), (4096, 131_072, 6 * MIB), (4096, 16_384, 4 * MIB), 1),
        # The defaults have scale 1: 3 MiB of window, 8 × 3 MiB in 300 ms.
        default_receive=Reach(6 * MIB, 3 * MIB, Fraction(83_886_080), Fraction(83_886_080, 3500 * MBIT)),
        default_send=Reach(4 * MIB, 2 * MIB, Fraction(2 * MIB * 80, 3), Fraction(2 * MIB * 80, 3 * 3500 * MBIT)),
        lines=(
            "net.ipv4.tcp_rmem = 4096 131072 525000000",
            "net.ipv4.tcp_wmem = 4096 16384 262500000",
            "net.ipv4.tcp_adv_win_scale = -2",
        ),
        notes=(SEND_NOTE, LIMITS_NOTE),
    )


def test_128_mib_need_512_mib_at_minus_2() -> None:
    rate_bps = Fraction(128 * MIB * 8 * 1000, 300)
    found = plan(300 * MS, rate_bps, kernel=(5, 15), adv_win_scale=-2)
    assert (found.window_bytes, found.receive_buffer_bytes, found.offered_shift) == (128 * MIB, 512 * MIB, 14)
    assert found.smallest_shift == 12


def test_a_path_that_the_defaults_fill() -> None:
    assert plan(85 * MS, 10 * MBIT, kernel=(6, 18), mss_bytes=1460) == Plan(
        rtt_ns=Fraction(85 * MS),
        rate_bps=Fraction(10 * MBIT),
        kernel=(6, 18),
        model=ScalingRatio(128),
        window_bytes=106_250,
        mss_bytes=1460,
        segments=72,
        packets=70,
        smallest_shift=1,
        offered_shift=10,
        receive_buffer_bytes=212_500,
        send_buffer_bytes=212_500,
        defaults=Defaults((6, 16), (4096, 131_072, 32 * MIB), (4096, 16_384, 4 * MIB), None),
        default_receive=Reach(32 * MIB, 16 * MIB, Fraction(16 * MIB * 8000, 85), Fraction(1)),
        default_send=Reach(4 * MIB, 2 * MIB, Fraction(2 * MIB * 8000, 85), Fraction(1)),
        lines=(),
        notes=(RATIO_NOTE, SEND_NOTE, LIMITS_NOTE),
    )


def test_a_kernel_that_is_not_known() -> None:
    found = plan(300 * MS, 3500 * MBIT)
    assert found.kernel is None
    assert found.model == AdvWinScale(1)
    assert found.receive_buffer_bytes == 262_500_000
    assert found.notes == (
        "Kernel unknown: assuming the defaults of 4.20 to 6.5, and half of the buffer for the window.",
        SEND_NOTE,
        LIMITS_NOTE,
    )
    # Both models give half.
    assert plan(300 * MS, 3500 * MBIT, kernel=(6, 12)).receive_buffer_bytes == 262_500_000


def test_a_scale_without_effect_is_reported() -> None:
    found = plan(300 * MS, 3500 * MBIT, kernel=(6, 6), adv_win_scale=-2, scaling_ratio=64)
    assert found.model == ScalingRatio(64)
    assert found.receive_buffer_bytes == 525_000_000
    assert found.lines == ("net.ipv4.tcp_rmem = 4096 131072 525000000", "net.ipv4.tcp_wmem = 4096 16384 262500000")
    assert found.notes[1] == "tcp_adv_win_scale has no effect from 6.6 on."


def test_a_path_that_no_host_can_fill() -> None:
    """100 Gbit/s × 300 ms is 3.75 GB: above RFC 7323's window and above a setting's 31 bits."""
    found = plan(300 * MS, 100_000 * MBIT, kernel=(6, 18))
    assert found.window_bytes == 3_750_000_000
    assert found.smallest_shift is None
    assert (found.offered_shift, found.receive_buffer_bytes) == (14, 7_500_000_000)
    assert found.lines == ("net.ipv4.tcp_rmem = 4096 131072 2147483647", "net.ipv4.tcp_wmem = 4096 16384 2147483647")
    assert found.notes[:2] == (
        "No shift can express this window: the maximum is 1,073,725,440 bytes (RFC 7323 §2.3). "
        "Use several connections.",
        "A setting cannot be that large: the maximum is 2,147,483,647, and the lines stop there.",
    )


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="rate must be above 0"):
        plan(1, 0)
    with pytest.raises(ValueError, match="round trip must be above 0"):
        plan(-1, 1)
    with pytest.raises(ValueError, match="tcp_adv_win_scale is -31 to 31"):
        plan(1, 1, adv_win_scale=32)
    with pytest.raises(ValueError, match="scaling ratio is 1 to 255"):
        plan(1, 1, kernel=(6, 6), scaling_ratio=0)
    with pytest.raises(ValueError, match="no segments of"):
        plan(1, 1, mss_bytes=0)
