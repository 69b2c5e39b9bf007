"""Growth of the receive buffer, compared to the byte with `ss` samples of runs in the lab's kernels."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest

from tcpwin.kernel import AdvWinScale, ScalingRatio, grown_buffer_bytes

RUN = Path(__file__).parents[2] / "captures" / "reference" / "bulk-300ms-4m2-stock.zip"
HERE = Path(__file__).parent
OF_6_12 = HERE / "growth-6.12.txt"
"""Each state in ss_receiver.txt once: `tcpwin lab run tests/kernel/growth.toml --kernel 6.12`, Linux 6.12.117."""
OF_7_3 = HERE / "growth-7.3.txt"
"""The same with `--kernel 7.3`, Linux 7.3.4."""
LOW_RTT_OF_7_3 = HERE / "growth-low-rtt-7.3.txt"
"""`growth-low-rtt.toml` there: tcp_rcvbuf_low_rtt exceeds the round trip, so samples see every step."""
MIB = 1 << 20


class Seen(NamedTuple):
    buffer: int
    space: int
    mss: int


def samples(text: str) -> list[Seen]:
    """Return the distinct states of the receiver's socket in `ss -tmi`."""
    found = re.findall(r"skmem:\(r\d+,rb(\d+),.* advmss:(\d+) .* rcv_space:(\d+)", text)
    return list(dict.fromkeys(Seen(int(buffer), int(space), int(mss)) for buffer, mss, space in found))


def test_6_1_counts_the_window_in_segments() -> None:
    """Round trip 300 ms, a sample every 200 ms, 4 MiB at -2: no step is missed."""
    with ZipFile(RUN) as bundle:
        seen = samples(bundle.read(f"{RUN.stem}/ss_receiver.txt").decode())
    assert [each.buffer for each in seen][:6] == [262144, 324800, 754000, 1670400, 3062400, 4 * MIB]
    for before, after in pairwise(seen):
        grown = grown_buffer_bytes(
            AdvWinScale(-2),
            buffer_bytes=before.buffer,
            taken_bytes=after.space,
            before_bytes=before.space,
            mss_bytes=before.mss,
            rmem_max_bytes=4 * MIB,
        )
        assert grown == after.buffer


def test_6_12_counts_the_window_by_the_connections_own_share() -> None:
    """1448 bytes in frames of 3328 are 111/256; round trip 100 ms, a sample every 20 ms, up to 32 MiB."""
    model = ScalingRatio.measured(1448, 3328)
    assert model == ScalingRatio(111)
    seen = samples(OF_6_12.read_text("ascii"))
    assert [each.buffer for each in seen][:4] == [131072, 187013, 436362, 961785]
    assert seen[-1].buffer == 32 * MIB
    for before, after in pairwise(seen):
        known = {"buffer_bytes": before.buffer, "taken_bytes": after.space, "before_bytes": before.space}
        grown = [
            grown_buffer_bytes(each, mss_bytes=before.mss, rmem_max_bytes=32 * MIB, **known)
            for each in (model, AdvWinScale(1))
        ]
        assert grown[0] == after.buffer
        assert grown[1] != after.buffer or after.buffer == 32 * MIB


def test_7_3_adds_no_cushion() -> None:
    """The 6.12 run repeated on 7.3: smaller steps from the second on."""
    seen = samples(OF_7_3.read_text("ascii"))
    assert [each.buffer for each in seen][:5] == [131072, 131072, 311688, 625158, 1840450]
    assert seen[-1].buffer == 32 * MIB
    for before, after in pairwise(seen):
        known = {"buffer_bytes": before.buffer, "taken_bytes": after.space, "before_bytes": before.space}
        grown = [
            grown_buffer_bytes(
                ScalingRatio(111), mss_bytes=before.mss, rmem_max_bytes=32 * MIB, kernel=kernel, rtt_us=100_000, **known
            )
            for kernel in ((7, 3), (6, 12))
        ]
        assert grown[0] == after.buffer
        assert grown[1] > after.buffer or after.buffer == 32 * MIB


def test_7_3_grows_with_the_round_trip_where_that_is_short() -> None:
    """Half of tcp_rcvbuf_low_rtt: a step increases the window by half, whatever the reader's rate did."""
    text = LOW_RTT_OF_7_3.read_text("ascii")
    seen = samples(text)
    assert len(seen) == 14
    for before, after in pairwise(seen):
        grown = grown_buffer_bytes(
            ScalingRatio(111),
            buffer_bytes=before.buffer,
            taken_bytes=after.space,
            before_bytes=before.space,
            mss_bytes=before.mss,
            rmem_max_bytes=32 * MIB,
            kernel=(7, 3),
            rtt_us=min([round(float(each) * 1000) for each in re.findall(r" rcv_rtt:(\S+) ", text)]),
            low_rtt_us=200_000,
        )
        assert grown == after.buffer


def test_each_change_of_growth_came_with_its_version() -> None:
    """20,000 bytes after 10,000, half of the buffer as window."""
    known = {"buffer_bytes": 1, "taken_bytes": 20_000, "before_bytes": 10_000, "mss_bytes": 1000, "rmem_max_bytes": MIB}
    model = ScalingRatio(128)
    assert grown_buffer_bytes(model, kernel=(6, 15), **known) == 2 * 3 * (40_000 + 16_000)
    assert grown_buffer_bytes(model, **known) == grown_buffer_bytes(model, kernel=(6, 15), **known)
    assert grown_buffer_bytes(model, kernel=(6, 16), **known) == 2 * 40_000
    assert grown_buffer_bytes(model, kernel=(6, 18), **known) == 2 * 3 * 40_000
    assert grown_buffer_bytes(model, kernel=(6, 18), rtt_us=500, **known) == 2 * 3 * 40_000
    assert grown_buffer_bytes(model, kernel=(6, 19), rtt_us=500, **known) == 2 * 60_000
    assert grown_buffer_bytes(model, kernel=(6, 19), rtt_us=1000, **known) == 2 * 3 * 40_000
    assert grown_buffer_bytes(model, kernel=(6, 19), out_of_order_bytes=7_000, **known) == 2 * (3 * 40_000 + 7_000)
    assert grown_buffer_bytes(model, kernel=(6, 15), out_of_order_bytes=7_000, **known) == 2 * 3 * (40_000 + 16_000)


@pytest.mark.parametrize("model", [AdvWinScale(1), AdvWinScale(-2), ScalingRatio(111)])
def test_a_reader_that_is_no_faster_grows_no_buffer(model: AdvWinScale | ScalingRatio) -> None:
    known = {"buffer_bytes": 131072, "before_bytes": 14480, "mss_bytes": 1448, "rmem_max_bytes": 6 * MIB}
    assert grown_buffer_bytes(model, taken_bytes=14480, **known) == 131072
    assert grown_buffer_bytes(model, taken_bytes=1 << 30, **known) == 6 * MIB
    assert grown_buffer_bytes(model, taken_bytes=14481, **{**known, "buffer_bytes": 5 * MIB}) == 5 * MIB
