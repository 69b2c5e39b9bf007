"""## What it finds

The receiver's window scale is that of a Windows host with restricted receive window autotuning, and its window held the
sender back.

## Why it matters

At the level "normal" Windows autotunes its window with a shift of 8. "highlyrestricted" uses 2 and "restricted" 4,
which limit the window to 262,140 and 1,048,560 bytes; "disabled" has no scaling at all. Old tuning guides recommend
these levels.

## How it is judged

With the host's `netsh interface tcp show global` or `Get-NetTCPSetting`: the level is one of the three, and the shift
in its SYN matches. Without it: the shift in its SYN is 2 or 4 and the SYN has no timestamps option, as is the default
on Windows. In both cases the next segment did not fit the open window for at least `limited_ns` and at least `share` of
the time from the first to the last data, at a rate of at least `fill` of one window per round trip, and the window
stayed near its maximum.

## When it is wrong

Any host may offer a shift of 2 or 4: Linux does with a `tcp_rmem` of 256 KiB or 1 MiB, and it has timestamps on by
default. Without the host's settings the finding is `possible`.

## What to do

Run the suggested command in an administrator's shell on the Windows host. It affects new connections only.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.kernel import WINDOWS_SHIFTS
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.window import (
    AFTER_SYN,
    HELD_BACK,
    full_frames,
    held_back,
    is_shown,
    kernel_denies,
    largest_rate_bps,
    stood_still,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import rate_text, share_text, time_text

_PROFILES = (None, "Internet")
LEVELS = ("disabled", "highlyrestricted", "restricted")


def judge(case: Case) -> Iterator[Finding]:
    data, shift = case.data, case.back.syn_window_scale
    level_shown = _autotuning_level(case)
    guessed = next((level for level in LEVELS[1:] if WINDOWS_SHIFTS[level] == shift), None)
    level = level_shown or guessed
    if not case.back.syn_seen or level is None or WINDOWS_SHIFTS.get(level) != shift or level not in LEVELS:
        return
    if level_shown is None and (case.back.syn_timestamps or _is_linux(case)):
        return
    held = held_back(case)
    if held is None or not stood_still(data) or held.fill < case.settings["fill"] or kernel_denies(case, held.held_ns):
        return
    frames = full_frames(case)
    if not is_shown(case, frames):
        return
    most = data.receive_window_max_bytes or 0
    offer = "no window scale" if shift is None else f"a window scale of {shift}"
    sure = f": its autotuning level is {level}" if level_shown else f", as Windows does at autotuning level {level}"
    yield case.finding(
        f"{case.the_receiver} offered {offer}{sure}. Its window reached {most:,} bytes, "
        f"{rate_text(largest_rate_bps(data, held.rtt_ns))} over {time_text(held.rtt_ns)}, and {case.the_sender} waited "
        f"{time_text(held.held_ns)} ({share_text(held.share)} of the transfer)",
        owner="host",
        side=case.receiver,
        confidence="certain" if level_shown else "possible",
        cost_ns=held.held_ns,
        evidence=Evidence(
            frames=(case.connection.first_frame, *frames),
            frames_of=AFTER_SYN,
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "shift": "none" if shift is None else shift,
                "level": level,
                "window_max_bytes": most,
                "rtt_ns": held.rtt_ns,
                "held_back_ns": held.held_ns,
            },
            ruled_out=None if level_shown else "Not Linux with its defaults: its SYN would have the timestamps option.",
        ),
        remedy=Remedy(
            f"Set {case.the_receiver}'s autotuning level to normal.",
            settings=("netsh interface tcp set global autotuninglevel=normal",),
            side_effects=(
                "New connections use more memory where the round trip is long. Some old firewalls mishandle large "
                "window scales, which may be why the level was lowered."
            ),
        ),
    )


def _autotuning_level(case: Case) -> str | None:
    """Return the level of the only Windows host in the snapshots; None if the sender's shift fits it too.

    Windows settings do not show which end the host is.
    """
    level_shown = []
    for host in case.analysis.hosts:
        from tcpwin.hosts import WindowsSample

        samples = [each for each in host.others if isinstance(each, WindowsSample) and each.profile in _PROFILES]
        level_shown += [each.autotuning_level for each in samples[-1:] if each.autotuning_level]
    if len(level_shown) != 1 or WINDOWS_SHIFTS.get(level_shown[0], -1) == case.data.syn_window_scale:
        return None
    return level_shown[0]


def _is_linux(case: Case) -> bool:
    host = case.host(case.receiver)
    return host is not None and (host.kernel is not None or host.settings is not None)


RULE = Rule(
    code="TW106",
    name="windows-autotuning-restricted",
    title="a Windows receiver whose autotuning is restricted",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    when=(("window_scale_shift", "<=", 4.0), ("window_cost_ns", ">=", "{limited_ns}")),
    thresholds=HELD_BACK,
)
