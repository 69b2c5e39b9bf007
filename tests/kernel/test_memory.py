"""Windows allowed by buffers: Cloudflare's table, the kernel's formulas, and their inverses."""

import pytest
from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpwin.kernel import FIRST_RATIO, HALF_RATIO, AdvWinScale, ScalingRatio, measured_models, memory_models

MIB = 1 << 20


@all_cases(("scale", "sixteenths"), [(4, 15), (3, 14), (2, 12), (1, 8), (0, 16), (-1, 8), (-2, 4), (-3, 2)])
def test_every_row_of_cloudflares_table(scale: int, sixteenths: int) -> None:
    """ "TCP window size": 15/16, 7/8, 3/4, 1/2, all, 1/2, 1/4, 1/8 of the memory."""
    assert AdvWinScale(scale).window_from_space(16_000) == sixteenths * 1000
    assert AdvWinScale(scale).space_from_window(sixteenths * 1000) == 16_000


@all_cases(
    ("space_bytes", "scale", "window_bytes"),
    [
        (512 * MIB, -2, 128 * MIB),
        (256 * MIB, 1, 128 * MIB),
        (4 * MIB, 1, 2 * MIB),
        (16 * MIB, -2, 4 * MIB),
        (170 * MIB, 2, 133_693_440),
        (146 * MIB, 3, 133_955_584),
        (137 * MIB, 4, 134_676_480),
        # Shifts round the subtracted part down.
        (7, 1, 4),
        (7, -1, 3),
        (1, 31, 1),
        (1 << 31, 31, (1 << 31) - 1),
        (1 << 31, -31, 1),
        ((1 << 31) - 1, -31, 0),
        (0, 1, 0),
        (-5, 1, 0),
        (-5, -1, 0),
    ],
)
def test_windows_before_6_6(space_bytes: int, scale: int, window_bytes: int) -> None:
    assert AdvWinScale(scale).window_from_space(space_bytes) == window_bytes


@all_cases(("scale", "overhead"), [(-2, 4), (1, 2), (2, 1.33), (3, 1.14), (4, 1.07), (0, 1)])
def test_overhead_is_cloudflares_column(scale: int, overhead: float) -> None:
    """ "buffer metadata to user payload ratio"."""
    assert round(float(AdvWinScale(scale).overhead), 2) == overhead


def test_start_ratios_are_the_kernels() -> None:
    """1200 << 8 over SKB_TRUESIZE(4096) = 4096 + 256 + 320; later 1 << 7."""
    assert FIRST_RATIO == 307_200 // 4672 == 65
    assert HALF_RATIO == 128


@all_cases(
    ("space_bytes", "ratio", "window_bytes"),
    [
        # Hechao Li, 697a6c8cec03: SO_RCVBUF of 65536 gives 131072 bytes, "~0.25 of rcvbuf", then half.
        (131_072, 65, 33_280),
        (131_072, 128, 65_536),
        (6 * MIB, 128, 3 * MIB),
        (32 * MIB, 128, 16 * MIB),
        (1000, 255, 996),
        (255, 1, 0),
        (256, 1, 1),
        (-1, 128, 0),
    ],
)
def test_windows_from_6_6_on(space_bytes: int, ratio: int, window_bytes: int) -> None:
    assert ScalingRatio(ratio).window_from_space(space_bytes) == window_bytes


@all_cases(
    ("payload_bytes", "truesize_bytes", "ratio"),
    [(1448, 2304, 160), (1200, 4672, 65), (1, 4352, 1), (0, 768, 1), (1448, 1448, 255), (65_160, 65_160 + 1024, 252)],
)
def test_ratio_that_a_packet_gives(payload_bytes: int, truesize_bytes: int, ratio: int) -> None:
    assert ScalingRatio.measured(payload_bytes, truesize_bytes) == ScalingRatio(ratio)


def test_values_that_no_kernel_accepts_are_refused() -> None:
    for scale in (-32, 32, 10**9):
        with pytest.raises(ValueError, match="tcp_adv_win_scale is -31 to 31"):
            AdvWinScale(scale)
    for ratio in (0, -1, 256):
        with pytest.raises(ValueError, match="scaling ratio is 1 to 255"):
            ScalingRatio(ratio)
    for payload, truesize in ((1448, 0), (-1, 768)):
        with pytest.raises(ValueError, match="no packet has"):
            ScalingRatio.measured(payload, truesize)


def test_names() -> None:
    assert AdvWinScale(-2).name == "tcp_adv_win_scale -2"
    assert ScalingRatio(128).name == "scaling_ratio 128/256"


@all_cases(
    ("kernel", "adv_win_scale", "models"),
    [
        (None, None, (AdvWinScale(1), ScalingRatio(128))),
        (None, -2, (AdvWinScale(-2), ScalingRatio(128))),
        ((3, 3), None, (AdvWinScale(2),)),
        ((3, 4), None, (AdvWinScale(1),)),
        ((6, 5), None, (AdvWinScale(1),)),
        ((6, 5), 3, (AdvWinScale(3),)),
        ((6, 6), 3, (ScalingRatio(65), ScalingRatio(128))),
        ((6, 9), None, (ScalingRatio(65), ScalingRatio(128))),
        ((6, 10), None, (ScalingRatio(128),)),
        ((7, 0), 3, (ScalingRatio(128),)),
    ],
)
def test_model_of_a_version(
    kernel: tuple[int, int] | None, adv_win_scale: int | None, models: tuple[AdvWinScale | ScalingRatio, ...]
) -> None:
    assert memory_models(kernel, adv_win_scale=adv_win_scale) == models


MODELS = st.one_of(st.integers(-31, 31).map(AdvWinScale), st.integers(1, 255).map(ScalingRatio))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(MODELS, st.integers(0, 1 << 31))
def test_a_buffer_for_a_window_allows_it(model: AdvWinScale | ScalingRatio, window_bytes: int) -> None:
    """It is minimal: a buffer smaller by the memory of one window byte does not suffice."""
    space_bytes = model.space_from_window(window_bytes)
    assert window_bytes <= model.window_from_space(space_bytes) <= window_bytes + 1
    less = space_bytes - int(model.overhead) - 1
    assert window_bytes == 0 or model.window_from_space(less) < window_bytes


@settings(max_examples=400, deadline=None, derandomize=True)
@given(MODELS, st.integers(0, 1 << 31), st.integers(0, 1 << 31))
def test_more_buffer_allows_no_less_window(model: AdvWinScale | ScalingRatio, one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert 0 <= model.window_from_space(small) <= model.window_from_space(large) <= large


def test_a_connections_own_share_is_reported_only_from_6_6_on() -> None:
    seen = {"buffer_bytes": 1 << 20, "window_bytes": (1 << 20) * 111 // 256}
    assert measured_models((6, 12), **seen) == (ScalingRatio(111),)
    assert measured_models((6, 1), **seen) == (AdvWinScale(1),)
    assert measured_models(None, **seen) == memory_models(None)
    # More window than buffer: the buffer was a different one.
    assert measured_models((6, 12), buffer_bytes=1 << 20, window_bytes=1 << 21) == (ScalingRatio(128),)
    assert measured_models((6, 12), buffer_bytes=0, window_bytes=1) == (ScalingRatio(128),)
