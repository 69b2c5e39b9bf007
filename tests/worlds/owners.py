"""The truth of a verdict's owner and fix: who makes the change of the lifts that gain most, and what it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tcpwin.lab import LiftResult, Scenario
from tcpwin.lab.lift import NONE_BELOW
from tcpwin.limits import Verdict
from tcpwin.limits.tables import MENDABLE

_ENDS = {"serve": "server", "drive": "client"}
_OWNERS: dict[str, tuple[str, ...]] = {
    "receiver_window": ("client_host",),
    "receiver_memory": ("client_host",),
    "send_buffer": ("server_host",),
    "path_rate": ("nobody",),
    "cross_traffic": ("nobody",),
    "path_loss": ("network",),
    "path_policer": ("network",),
    "receiver_application": ("client_application",),
    "sender_application": ("server_application",),
    "idle_restart": ("server_host",),
    "congestion_control": ("nobody",),
    "server_work": ("server_application",),
    "think_time": ("client_application",),
    "delay": ("client_application",),
}
"""Who makes the change that each lift makes. Nobody makes a path faster or a first window larger than the kernel's; a
round trip is saved by asking for more at a time.
"""
_CHANGES: dict[str, tuple[str, ...]] = {
    "read_faster": ("receiver_application",),
    "grow_window": ("receiver_window",),
    "offer_scaling": ("receiver_window",),
    "grow_send_buffer": ("send_buffer",),
    "find_loss": ("path_loss",),
    "keep_window_after_idle": ("idle_restart",),
    "write_whole_messages": ("nagle", "delayed_ack"),
    "ask_for_more": ("round_trips",),
    "raise_policer": ("path_policer",),
    "check_peer": ("peer_silent",),
}
"""The limits that each class of fix lifts."""


def owners_of(scenario: Scenario, lift: str) -> tuple[str, ...]:
    """Return who can make the change of a lift."""
    if lift in ("nagle", "delayed_ack"):
        # The application that writes a message in parts; its system holds them back, the other's the ACK.
        writers = [end for key, end in _ENDS.items() if getattr(scenario, key).parts > 1] or list(_ENDS.values())
        return tuple(f"{end}_application" for end in writers)
    return _OWNERS[lift]


def expected_owners(result: LiftResult) -> tuple[str, ...]:
    """Return the owners of the lifts that gain about most; nobody if none gains."""
    if result.limit == "none":
        return ("nobody",)
    best = (each.lift.name for each in result.gains if each.lift.limit in result.alike)
    return tuple(dict.fromkeys(owner for lift in best for owner in owners_of(result.scenario, lift)))


def changed_by(verdict: Verdict) -> tuple[str, ...]:
    """Return the limits that a verdict's fix lifts; empty without a fix."""
    if verdict.fix is None:
        return ()
    about = verdict.about
    if about is not None and about.remedy is not None:
        return about.limits or (verdict.also or verdict.limit,)
    return _CHANGES[verdict.statement.fix]


def gains_of(result: LiftResult) -> dict[str, int]:
    """Return the most that lifting each limit gained."""
    gains: dict[str, int] = {}
    for each in result.gains:
        gains[each.lift.limit] = max(each.gain_ns, gains.get(each.lift.limit, each.gain_ns))
    return gains


def is_fix_right(changed: Iterable[str], alike: Iterable[str], gains_ns: Mapping[str, int], completion_ns: int) -> bool:
    """Return whether a fix lifts a limit that gains about most.

    If nobody can lift one of these, "nothing to fix" is right, and so is a fix of another limit whose lift gains.
    """
    changed, alike = set(changed), set(alike)
    if changed & alike:
        return True
    if not alike - MENDABLE:
        return False
    return not changed or any(gains_ns.get(limit, 0) >= NONE_BELOW * completion_ns for limit in changed)
