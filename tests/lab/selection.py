"""Which captures a test stands on: `on(...)` parametrises it over runs of the lab, at one end or both.

The names are written out under what each run is; test_selection holds them against what the runs' own counters and
scenarios say.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

ENDS = ("snd", "rcv")
LATE = ("mid_connection_noSYN",)
STALL = ("zero_window_stall5s",)
SLOW_READER = ("slow_reader",)
IPERF3 = ("iperf3_300ms_20mbit_512m2",)
# The reader closed while data were unread or still to come.
ABORTED = (
    *IPERF3,
    *SLOW_READER,
    "notsent_lowat_128k_466ms_10mbit",
    "notsent_lowat_off_466ms_10mbit",
    "oscil_10mbit_300ms_170p2_guard",
    "oscil_10mbit_300ms_170p2_vanilla",
    "oscil_10mbit_300ms_512m2_guard_vethtruesize",
)
# netem loses packets of the data's path or varies their delay.
ROUGH = ("loss1_cubic_sack1", "loss1_reno_sack0", "loss1_reorder_cubic_sack1", "reorder_only_cubic")
# A bulk reader takes what arrives at once.
STEADY = (
    "app_limited",
    "cooked_any",
    "no_wscale_85ms",
    "offload_on_bigframes",
    "rmem_1024k_196ms",
    "rmem_64k_196ms",
    "wscale_85ms",
)
SCENARIOS = (
    *ABORTED,
    *LATE,
    *ROUGH,
    *STALL,
    *STEADY,
    "idle_restart_ssai0",
    "idle_restart_ssai1",
)
# Reader and sender keep no rhythm in step with five samples a second.
IRREGULAR = (
    *(scenario for scenario in ABORTED if scenario not in SLOW_READER),
    "loss1_cubic_sack1",
    "loss1_reno_sack0",
    "no_wscale_85ms",
    "rmem_64k_196ms",
)
CLOSED = tuple(scenario for scenario in SCENARIOS if scenario not in ABORTED)
# Captures of the project that are copies of a run's. Their truths in tests/lab/truth are the run's own files with
# fewer samples.
COPIES = (
    ("cooked_any", "snd", "cooked-any"),
    ("idle_restart_ssai1", "snd", "idle-restart"),
    ("loss1_cubic_sack1", "snd", "loss-1-percent"),
    ("mid_connection_noSYN", "snd", "mid-connection"),
    ("no_wscale_85ms", "snd", "no-window-scaling"),
    ("offload_on_bigframes", "snd", "offload-big-frames"),
    ("rmem_64k_196ms", "snd", "receive-buffer-64k"),
    ("rmem_64k_196ms", "rcv", "receive-buffer-64k-receiver"),
    ("slow_reader", "snd", "slow-reader"),
    ("slow_reader", "rcv", "slow-reader-receiver"),
    ("wscale_85ms", "snd", "window-scaling"),
    ("zero_window_stall5s", "snd", "zero-window-stall"),
)
# The copy holds the first packets of the run only.
CUT_COPIES = ("mid-connection",)


def on(
    scenarios: Iterable[str] = SCENARIOS,
    *,
    ends: Iterable[str] = ENDS,
    without: Iterable[str] = (),
    copies: bool = True,
    cut: bool = True,
    of: int = 1,
    first: int = 0,
) -> pytest.MarkDecorator:
    """Give a test's argument `run` these scenarios at these ends, and the copies; `cut`: also those cut short.

    A copy that is not cut holds the very packets of its run: it has its turn at night. By day, of so many captures one
    is asked, from the given one on.
    """
    chosen = [scenario for scenario in scenarios if scenario not in set(without)]
    runs = [(scenario, end, "") for scenario in chosen for end in ends]
    for copy in COPIES if copies else ():
        scenario, end, name = copy
        if scenario in chosen and end in ends and (cut or name not in CUT_COPIES):
            runs.append(copy)
    names = [f"{scenario}-{end}" + ("-copy" if copy else "") for scenario, end, copy in runs]
    nightly = [
        pytest.mark.nightly if (copy and copy not in CUT_COPIES) or place % of != first else ()
        for place, (_, _, copy) in enumerate(runs)
    ]
    marked = [pytest.param(each, marks=marks) for each, marks in zip(runs, nightly, strict=True)]
    return pytest.mark.parametrize("run", marked, ids=names, indirect=True)
