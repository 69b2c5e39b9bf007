"""Past errors in verdicts and counts, each with a test that fails if it returns.

Each test was seen to fail on commit b2a1c20, or with the line removed that prevents the error (recovery, sizes and ends
of writes, stalls at the end, sums, surfaces).
"""

from __future__ import annotations

from pathlib import Path

from cases import all_cases

TESTS = Path(__file__).parents[1]
MECHANISMS = {
    "a full window above a standing queue is blamed instead of the path": (
        "limits/test_full_path.py::test_a_window_above_a_standing_queue_is_not_the_limit",
    ),
    "the flight at which slow start lost is waited for on a full path": (
        "limits/test_after_overshoot.py::test_a_path_that_is_full_below_the_overshoot_is_the_limit",
    ),
    "recovery is a limit by definition: BBR at the path's rate is said to suffer from loss, and to need BBR": (
        "limits/test_loss_at_line_rate.py::test_recovery_on_a_full_path_is_not_the_limit",
    ),
    "full segments are those of the SYNs, where a tunnel or path-MTU discovery left less": (
        "analysis/test_segment_size.py::test_bulk_in_small_segments_is_not_the_application",
    ),
    "a short segment ends a write, though a congestion window, offload or the window cut it": (
        "limits/test_write_goes_on.py::test_flights_that_end_short_are_not_the_applications",
        "limits/test_write_goes_on.py::test_a_short_segment_left_by_offload_does_not_end_a_write",
        "limits/test_write_goes_on.py::test_short_pushed_segments_into_a_full_window_are_the_windows",
        "scenarios/budget-short-segment-without-push.ladder",
    ),
    "a peer that went silent for good is window, path or tail loss": (
        "hangs/test_stories.py::test_what_stalls_is_named",
        "hangs/test_stories.py::test_the_findings_cost_is_the_stalls_duration",
    ),
    "the window is closed when the capture ends, or at a reset, and nothing is found": (
        "hangs/test_stories.py::test_exit_status",
        "hangs/test_stories.py::test_the_findings_cost_is_the_stalls_duration",
    ),
    "time in recovery, in timeouts or of findings is a sum of what overlaps": (
        "limits/test_overlaps.py::test_a_timeout_within_recovery_is_one_time",
        "limits/test_claims.py::test_rules_that_know_nothing_of_each_other_share_the_life",
        "test_never.py::test_bundled",
    ),
    "surfaces judge for themselves: a table, a form or a page says another limit, share or cost": (
        "limits/test_surfaces.py::test_columns_of_many",
        "limits/test_surfaces.py::test_summary",
        "limits/test_surfaces.py::test_check_as_json",
        "limits/test_bulk.py::test_columns_say_what_the_judge_says",
    ),
    "near the receiver, what triggered a retransmission is captured less than the least delay before it": (
        "scenarios/recovery-triggered-a-round-trip-before-at-the-receiver.ladder",
        "scenarios/rto-not-by-duplicate-acks-that-are-on-their-way.ladder",
    ),
    "the sender's flight exceeds its window where the delay varies": (
        "scenarios/vantage-flight-within-the-window-where-the-way-varies.ladder",
    ),
    "copies of a routed capture, milliseconds apart, are counted as retransmissions": (
        "scenarios/connection-capture-duplicates-behind-a-slow-router.ladder",
    ),
    "an echo older than the last retransmission is a round trip": (
        "scenarios/rtt-none-by-an-echo-of-an-earlier-retransmission.ladder",
        "scenarios/rtt-none-by-an-echo-of-what-was-sent-before-the-retransmission.ladder",
    ),
    "a window shrinks by an ACK that is older, as its IP identification shows": (
        "scenarios/window-late-ack-is-no-shrink.ladder",
    ),
    "one damaged segment moves what was sent": (
        "scenarios/flight-one-segment-beyond-every-window.ladder",
        "scenarios/flight-one-ack-beyond-every-window.ladder",
    ),
    "a retransmission is lost although a DSACK says that it came": (
        "scenarios/recovery-no-lost-retransmission-by-dsack.ladder",
    ),
    "the path reorders, by a retransmission that came sooner than a round trip": (
        "scenarios/reordering-not-by-a-retransmission-sooner-than-the-handshake.ladder",
    ),
    "a refused byte of a probe is a retransmission": ("scenarios/zero-probe-carries-no-byte.ladder",),
    "goodput of a connection joined in the middle counts what was sent before": (
        "scenarios/goodput-of-a-capture-begun-in-mid-transfer.ladder",
        "scenarios/goodput-from-a-gap-before-the-first-data.ladder",
    ),
    "a clock that was set back makes a field impossible": ("scenarios/clock-set-back-for-good.ladder",),
}


@all_cases("mechanism", MECHANISMS)
def test_each_mechanism_keeps_its_tests(mechanism: str) -> None:
    for place in MECHANISMS[mechanism]:
        name, _, function = place.partition("::")
        assert f"def {function}" in (TESTS / name).read_text(encoding="utf8") if function else (TESTS / name).is_file()
