"""No analysis of any capture states something impossible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from analysis.bundled import CAPTURES
from cases import all_cases
from never import of_direction, of_remedy, of_verdict, violations

import tcpwin
from tcpwin import TcpwinError

BUNDLED = sorted(
    path
    for folder in ("broken", "lab", "wild")
    for path in (CAPTURES / folder).iterdir()
    if path.is_file() and path.suffix != ".toml"
)


@all_cases("path", BUNDLED, ids=lambda path: path.name)
def test_bundled(path: Path) -> None:
    try:
        analysis = tcpwin.analyze(path)
    except TcpwinError:
        return
    assert violations(analysis) == []


def test_public_and_malformed_captures(reference_captures: Path) -> None:
    found = {}
    for folder in ("real", "malformed", "lab"):
        for path in sorted((reference_captures / folder).rglob("*")):
            if not path.is_file() or path.suffix in (".toml", ".json", ".txt", ".md"):
                continue
            try:
                analysis = tcpwin.analyze(path)
            except TcpwinError:
                continue
            if wrong := violations(analysis):
                found[str(path.relative_to(reference_captures))] = wrong
    assert found == {}


@all_cases(
    ("field", "value"),
    [
        ("share", 1.5),
        ("cost_ns", 10**15),
        ("lost_ns", -1),
        ("cost_high_ns", 10**15),
        ("limit", "weather"),
        ("share", 0.123),
    ],
)
def test_a_false_verdict_is_found(field: str, value: Any) -> None:
    [connection, *_] = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz").connections
    verdict = connection.verdict
    assert verdict is not None
    assert verdict.cost_ns > 0
    assert not list(of_verdict(verdict, connection.duration_ns))
    assert list(of_verdict(replace(verdict, **{field: value}), connection.duration_ns))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("recovery_ns", 1_000_001),
        ("stall_at_end_ns", 2_000_000),
        ("acked_bytes", 876_000_000),
        ("goodput_bps", 1e10),
    ],
)
def test_a_false_number_is_found(field: str, value: Any) -> None:
    right: dict[str, Any] = {
        "recovery_ns": 0,
        "stall_at_end_ns": 0,
        "segments": 4,
        "missed_bytes": 0,
        "acked_bytes": 5_500,
        "unique_bytes": 5_500,
        "payload_bytes": 5_500,
        "goodput_bps": 44e6,
        "throughput_bps": 44e6,
    }
    assert not list(of_direction(SimpleNamespace(**right), 1_000_000))  # type: ignore[arg-type]
    assert list(of_direction(SimpleNamespace(**{**right, field: value}), 1_000_000))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ('sysctl -w net.ipv4.tcp_rmem="4096 131072 6291456"', "receive_window"),
        ('sysctl -w net.ipv4.tcp_rmem="4096 131072 33554432"', "path_rate"),
        ("sysctl -w net.ipv4.tcp_congestion_control=bbr", "receive_window"),
    ],
)
def test_a_vain_remedy_is_found(line: str, limit: str) -> None:
    settings = SimpleNamespace(values={"net.ipv4.tcp_rmem": "4096\t131072\t6291456"})
    finding: Any = SimpleNamespace(side="client", direction="b_to_a", remedy=SimpleNamespace(settings=(line,)))

    def connection(limit: str, algorithm: str, host: Any) -> Any:
        verdict = SimpleNamespace(limit=limit, second_limit=None)
        samples = {"b": (SimpleNamespace(congestion_control=algorithm),)}
        return SimpleNamespace(hosts={"a": host}, socket_samples=samples, verdicts={"b_to_a": verdict})

    assert list(of_remedy(connection(limit, "bbr", SimpleNamespace(settings=settings)), finding))
    assert not list(of_remedy(connection("receive_window", "cubic", SimpleNamespace(settings=None)), finding))
