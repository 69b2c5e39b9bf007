"""The collector's changes, applied to the previous state of a socket, give its present state.

Layouts of include/uapi/linux/inet_diag.h and tcp.h.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from cases import all_cases
from hypothesis import given
from hypothesis import strategies as st

from tcpwin import _engine
from tcpwin.hosts.collect.changes import comparison_of
from tcpwin.hosts.collect.message import HEADER, read_socket
from tcpwin.hosts.collect.tcp_info import zero_fields

EXPIRES_AT, RECEIVE_QUEUE_AT, USER_AT = 52, 56, 64
MEMORY_AT = HEADER.size + 4
RUNNING = {"lastsnd_ns", "lastrcv_ns", "lastack_ns"}


def attribute(kind: int, data: bytes) -> bytes:
    """Return a netlink attribute, padded."""
    return (struct.pack("=HH", 4 + len(data), kind) + data).ljust(4 + len(data) + 3 & ~3, b"\0")


def message(*, info_bytes: int = 240, memory_bytes: int = 36, congestion: bytes = b"cubic\0", state: int = 1) -> bytes:
    """Return a message of a socket with a round trip and two queues."""
    head = HEADER.pack(2, state, 0, 0, b"\x00\x50", b"\xc0\x00", bytes(16), bytes(16), 0, 9, 1, 0, 11, 12, 1000, 77)
    info = bytearray(info_bytes)
    info[0] = state
    struct.pack_into("=I", info, 68, 40_000)
    return head + attribute(7, bytes(memory_bytes)) + attribute(2, bytes(info)) + attribute(4, congestion)


def info_at(data: bytes) -> int:
    """Return the offset of `struct tcp_info` in a message."""
    return read_socket(data)[1].info


def edited(data: bytes, edits: dict[int, int]) -> bytes:
    """Return the message with some bytes replaced."""
    changed = bytearray(data)
    for at, value in edits.items():
        changed[at] = value
    return bytes(changed)


def changes(before: bytes, after: bytes) -> dict[str, Any] | None:
    """Return the changes in `after`; None if a complete record is needed."""
    _, parts = read_socket(before)
    members = comparison_of(len(before), parts).changes(before, after)
    return None if members is None else json.loads(f"{{{members}}}")


def told(edits: dict[int, int]) -> dict[str, Any] | None:
    """Return the changes caused by these edits without running times, which must be present."""
    found = changes(message(), edited(message(), edits))
    if found:
        assert found.keys() >= RUNNING
        found = {name: value for name, value in found.items() if name not in RUNNING}
    return found


def test_unchanged_values_are_left_out() -> None:
    assert told({}) == {}
    info = info_at(message())
    # Times that advance without events: since data was sent, received or acknowledged, and until the timer expires.
    assert told({info + 44: 1, info + 48: 1, info + 52: 1, info + 56: 1, EXPIRES_AT: 200}) == {}


def test_changed_values_are_written() -> None:
    info = info_at(message())
    assert told({info + 80: 10}) == {"cwnd_segments": 10}
    assert told({RECEIVE_QUEUE_AT: 5}) == {"recv_q_bytes": 5}
    assert told({MEMORY_AT: 3, MEMORY_AT + 32: 2}) == {"rmem_alloc_bytes": 3, "drops": 2}
    assert told({info + 76: 0xFF, info + 77: 0xFF}) == {"ssthresh_segments": None}
    assert told({info + 68: 0x41}) == {"rtt_ns": 40_001_000}
    assert told({info + 72: 9}) == {"rttvar_ns": 9_000}


def test_a_timer_is_written_while_it_runs_and_when_it_ends() -> None:
    idle, running = message(), edited(message(), {2: 1, 3: 2, EXPIRES_AT: 200})
    timer = {"name": "on", "expires_ns": 200_000_000, "retransmissions": 2}
    later = edited(running, {EXPIRES_AT: 100, RECEIVE_QUEUE_AT: 5})
    begins, ends, goes_on = changes(idle, running), changes(running, idle), changes(running, later)
    assert begins["timer"] == timer
    assert ends["timer"] is None
    assert goes_on["timer"] == {**timer, "expires_ns": 100_000_000}
    assert changes(running, edited(running, {EXPIRES_AT: 100})) == {}


def test_changed_words_are_written_with_those_removed() -> None:
    before, after = message(), message(congestion=b"htcp!\0")
    found = changes(before, after)
    assert {name: value for name, value in found.items() if name not in RUNNING} == {
        "congestion_control": "htcp!",
        "bbr": None,
        "dctcp": None,
        "ulp": None,
    }


@all_cases("at", [0, 1, 4, 20, 44, USER_AT, USER_AT + 4])
def test_rarely_changing_values_need_a_complete_sample(at: int) -> None:
    assert told({at: 250}) is None


def test_state_options_shifts_and_an_unknown_round_trip_need_the_whole() -> None:
    info = info_at(message())
    for at in (info, info + 5, info + 6):
        assert told({at: 250}) is None
    assert told({info + 68: 0, info + 69: 0}) is None


def test_of_a_listener_any_change_needs_the_whole() -> None:
    listener = message(state=10)
    assert changes(listener, listener) == {}
    assert changes(listener, edited(listener, {EXPIRES_AT: 1})) == {}
    assert changes(listener, edited(listener, {RECEIVE_QUEUE_AT: 1})) is None
    assert changes(listener, edited(listener, {info_at(message()) + 80: 10})) is None


@given(st.data(), st.integers(104, 290), st.integers(0, 44))
def test_changes_lead_from_one_message_to_the_next(data: st.DataObject, info_bytes: int, memory_bytes: int) -> None:
    base = message(info_bytes=info_bytes, memory_bytes=memory_bytes)
    _, parts = read_socket(base)
    # No change of the types and lengths of attributes, and no state LISTEN.
    places = [
        2, 3, *range(EXPIRES_AT, USER_AT), *range(parts.meminfo, parts.meminfo_end), *range(parts.info, parts.info_end)
    ]  # fmt: skip
    bytes_by_place = st.dictionaries(st.sampled_from(places), st.integers(0, 255))
    before = edited(base, {**data.draw(bytes_by_place), parts.info: 1})
    after = edited(before, {**data.draw(bytes_by_place), parts.info: 1})
    found = changes(before, after)
    old, new = read_socket(before)[0], read_socket(after)[0]
    if found is None:
        options_at, rtt_at = parts.info + 5, parts.info + 68
        is_rtt_unknown = any(each[rtt_at : rtt_at + 4] == bytes(4) for each in (before, after))
        assert is_rtt_unknown or before[options_at : options_at + 2] != after[options_at : options_at + 2]
        return
    zeros = zero_fields(info_bytes)
    if not found:
        for record in (old, new):
            for name in RUNNING:
                record.pop(name)
            if "timer" in record:
                del record["timer"]["expires_ns"]
    known = {**zeros, **old, **found}
    assert {name: value for name, value in known.items() if value is not None} == {
        name: value for name, value in {**zeros, **new}.items() if value is not None
    }


def test_messages_of_another_length_need_the_whole() -> None:
    _, parts = read_socket(message())
    assert comparison_of(len(message()), parts).changes(message(), message() + bytes(4)) is None


@all_cases(
    "wrong",
    [
        {"steady": [(0, 9)]},
        {"steady": [(5, 4)]},
        {"watched": [(8, 9)]},
        {"measured": [(0, 3)]},
        {"fields": [("name", 7, 2, 1, True, 9)]},
        {"running": [("name", 1 << 63, 8, 1, True, 9)]},
        {"flags": [("name", 8, 1)]},
    ],
)
def test_a_layout_that_leads_outside_of_the_message_is_refused(wrong: dict[str, Any]) -> None:
    nothing: dict[str, Any] = {
        "steady": [], "measured": [], "watched": [], "fields": [], "flags": [], "running": []
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"^the layout exceeds the message$"):
        _engine.MessageLayout(8, **{**nothing, **wrong})
