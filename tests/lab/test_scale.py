"""The window scales of both sides are the shifts in ss's `wscale:A,B`: the peer's windows, then our own."""

from __future__ import annotations

from lab.runs import Run
from lab.selection import LATE, on


@on(without=LATE)
def test_scale_is_that_of_ss(run: Run) -> None:
    scales = {sample.window_scales for sample in run.samples("snd")}
    assert len(scales) == 1
    [shifts] = scales
    allowed = run.meta["sysctls"]["snd"]["net.ipv4.tcp_window_scaling"] == "1"
    assert (shifts is not None) == allowed
    ways = (run.data, run.back)
    if shifts is None:
        assert [way.window_scale.state for way in ways] == ["disabled"] * 2
        assert [way.window_scale.shift for way in ways] == [0, 0]
        assert [way.window_scale.disabled_by for way in ways] == ["both"] * 2
        assert [way.syn_window_scale for way in ways] == [None, None]
    else:
        assert [way.window_scale.state for way in ways] == ["known"] * 2
        assert tuple(way.window_scale.shift for way in ways) == shifts
        assert (run.back.syn_window_scale, run.data.syn_window_scale) == shifts


@on()
def test_both_ends_of_ss_tell_the_same_scale(run: Run) -> None:
    """The peer's scale at one end is our own at the other, which guards the reading of `wscale`."""
    ends = [{sample.window_scales for sample in run.samples(end)} for end in ("snd", "rcv")]
    assert ends[0] == {scales and scales[::-1] for scales in ends[1]}


@on(LATE)
def test_an_unseen_scale_is_a_range_that_holds_the_truth(run: Run) -> None:
    [shifts] = {sample.window_scales for sample in run.samples("snd")}
    assert shifts is not None
    for way, truth in zip((run.data, run.back), shifts, strict=True):
        assert way.window_scale.state == "unknown"
        assert way.window_scale.shift is None
        assert way.window_scale.shift_min <= truth <= way.window_scale.shift_max
        assert way.receive_window_max_bytes is None
        assert way.receive_window_mean_bytes is None
    assert set(run.columns["window"]) == {-1}
    if run.data.window_scale.shift_min > 0:
        assert run.data.window_scale.evidence
    if run.end == "snd":
        # By ss, the flight alone exceeds the largest unscaled window.
        flight = max(run.outstanding_bytes(sample) for sample in run.samples("snd"))
        largest = int(run.columns["window_raw"][~run.from_sender].max())
        assert largest < flight
        assert run.data.window_scale.shift_min > 0


@on(without=LATE)
def test_options_of_the_syns_are_those_of_the_sysctls(run: Run) -> None:
    for way in (run.data, run.back):
        assert way.syn_seen
        assert way.syn_sack_permitted == (run.meta["sysctls"]["snd"]["net.ipv4.tcp_sack"] == "1")
        assert way.syn_timestamps == (run.meta["sysctls"]["snd"]["net.ipv4.tcp_timestamps"] == "1")
    assert {sample.number("mss") for sample in run.samples("snd")} == {run.data.mss_bytes}
