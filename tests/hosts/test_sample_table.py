"""Samples as rows, objects and columns; steps of counters and their sum."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tcpwin.errors import SnapshotError
from tcpwin.hosts import CounterSample, SocketSample, SocketTimer, SocketUser, UlpInfo
from tcpwin.hosts import table as module
from tcpwin.hosts.counters import MEANINGS, CounterDelta
from tcpwin.hosts.table import (
    COUNTER_KINDS,
    SOCKET_KINDS,
    CounterRow,
    CounterSteps,
    counter_rows,
    plain_rows,
    sample_rows,
    socket_object,
    socket_table,
    socket_values,
    table_of,
)

SAMPLE = SocketSample(
    time_ns=1_700_000_000_250_000_000,
    line=5,
    state="ESTAB",
    local_address="10.9.1.1",
    local_port=443,
    users=(SocketUser("we,b", 7, 3),),
    timer=SocketTimer("on", 240_000_000, 2),
    cookie=(1 << 64) - 1,
    fast_open=False,
    cwnd_segments=26,
    mss_bytes=1448,
    send_bps=7_529_600.0,
    md5_keys=("10.0.0.0/8",),
    ulp=UlpInfo("tls", {"version": "1.3"}),
    bbr={"bw_bps": 5.5},
    extra={"new": "1"},
)
SAID: dict[str, Any] = {
    "index": 0,
    "time_ns": 1_700_000_000_250_000_000,
    "line": 5,
    "state": "ESTAB",
    "local_address": "10.9.1.1",
    "local_port": 443,
    "users": [{"name": "we,b", "pid": 7, "fd": 3}],
    "timer": {"name": "on", "expires_ns": 240_000_000, "retransmissions": 2},
    "cookie": (1 << 64) - 1,
    "fast_open": False,
    "mss_bytes": 1448,
    "cwnd_segments": 26,
    "send_bps": 7_529_600.0,
    "md5_keys": ["10.0.0.0/8"],
    "ulp": {"name": "tls", "values": {"version": "1.3"}},
    "bbr": {"bw_bps": 5.5},
    "extra": {"new": "1"},
    "cwnd_bytes": 37_648,
}


def test_an_object_has_the_present_values() -> None:
    assert socket_object(SAMPLE) == SAID
    assert socket_object(SocketSample()) == {"index": 0}
    assert socket_object(SAMPLE, ("rtt_ns", "users", "cwnd_bytes")) == {
        "rtt_ns": None,
        "users": SAID["users"],
        "cwnd_bytes": 37_648,
    }


def test_a_row_has_every_column_and_json_where_values_are_several() -> None:
    row = socket_values(SAMPLE)
    assert list(row) == list(SOCKET_KINDS)
    nested = ("users", "timer", "md5_keys", "ulp", "bbr", "extra")
    expected = {name: json.dumps(value) if name in nested else value for name, value in SAID.items()}
    expected |= {"peer_address": ""}
    assert {name: value for name, value in row.items() if value is not None} == expected


def test_columns_are_typed_and_masked() -> None:
    table = socket_table([SAMPLE, SocketSample(rtt_ns=40, send_bps=1.5)])
    assert list(table) == list(SOCKET_KINDS)
    types = {name: str(column.dtype) for name, column in table.items()}
    wanted = {"int": "int64", "float": "float64", "bool": "bool", "str": "object", "uint": "uint64"}
    assert types == {name: wanted[kind] for name, kind in SOCKET_KINDS.items()}
    assert types["cookie"] == "uint64"
    for name, expected in {
        "rtt_ns": [None, 40],
        "send_bps": [7_529_600.0, 1.5],
        "cookie": [(1 << 64) - 1, None],
        "fast_open": [False, None],
        "state": ["ESTAB", ""],
        "cgroup": [None, None],
    }.items():
        assert table[name].tolist() == expected, name
    assert list(socket_table([SAMPLE], ["rtt_ns", "state"])) == ["rtt_ns", "state"]
    assert socket_table([]).height == 0


def test_numbers_beyond_64_bits_become_floats() -> None:
    kinds = {"a": "int", "b": "int"}
    table = table_of([{"a": 1 << 70, "b": -1}, {"a": -1, "b": 1 << 63}], kinds)
    assert [str(column.dtype) for column in table.values()] == ["float64", "float64"]
    assert table["a"].tolist() == [float(1 << 70), -1.0]
    assert isinstance(table["a"], np.ndarray)


def counters(time_s: int | None, kind: bool | None = False, **values: int) -> CounterSample:
    return CounterSample(None if time_s is None else time_s * 10**9, 1, values, kind, {})


def total_of(*samples: CounterSample) -> tuple[CounterSteps, CounterDelta | None]:
    steps = CounterSteps(samples)
    for _ in steps:
        pass
    return steps, steps.total


def test_steps_add_up_with_their_resets() -> None:
    samples = [
        counters(0, TcpRetransSegs=12, TcpInSegs=2000, TcpCurrEstab=4),
        counters(2, TcpRetransSegs=2, TcpInSegs=4000, TcpCurrEstab=9),
        counters(4, TcpRetransSegs=6, TcpInSegs=4500, TcpCurrEstab=1),
    ]
    steps = CounterSteps(samples)
    assert list(steps) == [
        CounterDelta(0, 2 * 10**9, {"TcpRetransSegs": 2, "TcpInSegs": 2000}, frozenset(["TcpRetransSegs"])),
        CounterDelta(2 * 10**9, 4 * 10**9, {"TcpRetransSegs": 4, "TcpInSegs": 500}),
    ]
    assert steps.total == CounterDelta(
        0, 4 * 10**9, {"TcpRetransSegs": 6, "TcpInSegs": 2500}, frozenset(["TcpRetransSegs"])
    )
    assert (steps.samples, steps.count, steps.first, steps.last) == (3, 2, samples[0], samples[2])


def test_increments_before_the_first_sample_are_not_a_step() -> None:
    steps, total = total_of(counters(0, True, A=100), counters(2, True, A=5), counters(4, True, A=7))
    assert total == CounterDelta(0, 4 * 10**9, {"A": 12})
    assert steps.count == 2


def test_one_sample_has_no_total() -> None:
    for kind in (True, False, None):
        steps, total = total_of(counters(0, kind, A=100))
        assert (steps.samples, steps.count, total) == (1, 0, None)


def test_samples_of_two_kinds_cannot_be_compared() -> None:
    steps, total = total_of(counters(0, True, A=100), counters(1, False, A=500))
    assert (steps.samples, total) == (2, None)


def test_samples_that_do_not_show_their_kind_are_judged_together() -> None:
    many = {f"C{letter}": 10 for letter in "abcdefghij"}
    _, total = total_of(counters(0, None, **many), counters(1, None, **many))
    assert total == CounterDelta(0, 10**9, dict.fromkeys(many, 0))
    few = {"Ca": 10}
    _, total = total_of(counters(0, None, **few), counters(1, None, **few))
    assert total == CounterDelta(0, 10**9, {"Ca": 0}, is_assumed=True)


def test_too_many_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NAMES", 2)
    steps = CounterSteps([counters(0, A=1, B=1, C=1), counters(1, A=1, B=1, C=1)], name="x.txt")
    with pytest.raises(SnapshotError, match=r"^x\.txt: more than 2 different counters: no kernel has that many$"):
        list(steps)


def test_rows_of_counters_come_in_their_order() -> None:
    values = {"Zzz": 4, "IpInReceives": 3, "TcpInSegs": 2500, "TcpRetransSegs": 6, "TcpExtPruneCalled": 0}
    delta = CounterDelta(0, 4 * 10**9, values, frozenset(["TcpExtTCPTimeouts"]))

    def row(name: str, increase: int, rate: float, reset: bool, printed: int | None) -> CounterRow:
        meaning = MEANINGS[name].counts if name in MEANINGS else None
        return CounterRow(0, 4 * 10**9, name, increase, rate, reset, printed, meaning)

    explained = [
        row("TcpRetransSegs", 6, 1.5, False, 9),
        row("TcpExtTCPTimeouts", 0, 0.0, True, None),
        row("TcpInSegs", 2500, 625.0, False, None),
    ]
    printed = {"TcpRetransSegs": 9, "Zzz": 7}
    assert counter_rows(delta, printed=printed) == explained
    assert counter_rows(delta, is_all=True, printed=printed) == [
        *explained,
        row("IpInReceives", 3, 0.75, False, None),
        row("Zzz", 4, 1.0, False, 7),
    ]
    assert [list(each) for each in plain_rows(explained)] == [list(COUNTER_KINDS)] * 3


@pytest.mark.parametrize(("kind", "increase"), [(True, 6), (False, None), (None, None)])
def test_one_samples_numbers_are_increases_only_if_marked(kind: bool | None, increase: int | None) -> None:
    sample = counters(3, kind, TcpRetransSegs=6, TcpCurrEstab=4, TcpInSegs=0)
    meaning = MEANINGS["TcpRetransSegs"].counts
    assert sample_rows(sample, is_all=True) == [
        CounterRow(None, 3 * 10**9, "TcpRetransSegs", increase, None, False, 6, meaning)
    ]
