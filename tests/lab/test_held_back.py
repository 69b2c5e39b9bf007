"""Time limited by the receive window, compared with the kernel's chronograph, `rwnd_limited` of ss."""

from __future__ import annotations

from lab.runs import Run
from lab.selection import on

# The chronograph starts with the write, up to a round trip before the first segment of a run; the packets show the wait
# only with data in flight. In 170p2_guard the receiver refuses segments: the kernel then waits for recovery, not for
# the window, although the window stays too small.
SHARE = 0.11
# The lab's kernel runs at HZ=100.
TICK_MS = 10


@on(ends=["snd"])
def test_held_back_time_matches_the_kernels_count(run: Run) -> None:
    if run.data.window_scale.shift is None:
        # Without a scale there are no windows in bytes and no time is claimed.
        assert run.data.window_limited_ns == 0
        return
    tokens = [sample.tokens for sample in run.samples("snd")]
    busy_ms, limited_ms = (
        max(float(each.get(name, "0ms").split("ms")[0]) for each in tokens) for name in ("busy", "rwnd_limited")
    )
    held_back_ms = (run.data.zero_window_ns + run.data.window_limited_ns) / 1e6
    assert abs(held_back_ms - limited_ms) <= SHARE * busy_ms
    if limited_ms == 0:
        assert held_back_ms < TICK_MS
