"""The receive buffer's growth against `ss` samples of runs in the lab's kernels: every step, to the byte."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest

from tcpwin.kernel import AdvWinScale, ScalingRatio, grown_buffer_bytes

RUN = Path(__file__).parents[2] / "captures" / "reference" / "bulk-300ms-4m2-stock.zip"
OF_6_12 = Path(__file__).with_name("growth-6.12.txt")
"""Each state of ss_receiver.txt once: `tcpwin lab run tests/kernel/growth-6.12.toml --kernel 6.12`, Linux 6.12.117."""
MIB = 1 << 20


class Seen(NamedTuple):
    buffer: int
    space: int
    mss: int


def samples(text: str) -> list[Seen]:
    """What `ss -tmi` said of the receiver's socket, each state once."""
    found = re.findall(r"skmem:\(r\d+,rb(\d+),.* advmss:(\d+) .* rcv_space:(\d+)", text)
    return list(dict.fromkeys(Seen(int(buffer), int(space), int(mss)) for buffer, mss, space in found))


def test_6_1_counts_the_window_in_segments() -> None:
    """A round trip of 300 ms, a sample each 200 ms, 4 MiB at -2: no step is missed."""
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
    """1448 bytes in frames of 3328 are 111/256; a round trip of 100 ms, a sample each 20 ms, to 32 MiB."""
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


@pytest.mark.parametrize("model", [AdvWinScale(1), AdvWinScale(-2), ScalingRatio(111)])
def test_a_reader_that_is_no_faster_grows_nothing(model: AdvWinScale | ScalingRatio) -> None:
    known = {"buffer_bytes": 131072, "before_bytes": 14480, "mss_bytes": 1448, "rmem_max_bytes": 6 * MIB}
    assert grown_buffer_bytes(model, taken_bytes=14480, **known) == 131072
    assert grown_buffer_bytes(model, taken_bytes=1 << 30, **known) == 6 * MIB
    assert grown_buffer_bytes(model, taken_bytes=14481, **{**known, "buffer_bytes": 5 * MIB}) == 5 * MIB
