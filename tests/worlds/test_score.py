"""The benchmark over drawn worlds: what counts as right, and how other tools' output is read."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from cases import all_cases
from worlds.owners import is_fix_right
from worlds.peers import APPLICATION, NETWORK, NOTHING, RECEIVER, SEND_BUFFER, by_chronographs, by_tcptrace, by_tshark
from worlds.score import Answer, Row, algorithms, compare_tools, confusion, main, rows_of, summary
from worlds.truths import read_truths

from tcpwin.lab import world

ROOT = Path(__file__).parents[2]
LAB = ROOT / "captures" / "lab"
WORLDS = Path(__file__).with_name("captures")
SECOND_NS = 10**9
OWNERS = {"receiver_window": "client_host", "path_loss": "network", "send_buffer": "server_host", "capture": "nobody"}


def row(named: str, *, cost_s: float = 8, confidence: str = "certain") -> Row:
    """Ten seconds, of which a larger window saves eight, and less loss seven and a half."""
    answers = {
        tool: Answer((named,), confidence, round(cost_s * SECOND_NS), OWNERS[named], (named,))
        for tool in ("packets", "snapshots")
    }
    answers["tshark"] = Answer(tuple(sorted(RECEIVER)))
    gains = {"receiver_window": 8 * SECOND_NS, "path_loss": 75 * SECOND_NS // 10, "send_buffer": -SECOND_NS}
    alike = ("receiver_window", "path_loss")
    return Row(1, 0, "made", "sender", "receiver_window", alike, ("client_host",), 10 * SECOND_NS, gains, answers)


def test_a_limit_that_gains_alike_is_right() -> None:
    assert row("receiver_window").is_right("packets")
    assert row("path_loss").is_right("packets")
    assert not row("send_buffer").is_right("packets")
    assert row("send_buffer").answers["tshark"].limits == tuple(sorted(RECEIVER))
    assert row("send_buffer").is_right("tshark")


@all_cases(
    ("named", "cost_s", "is_near"),
    [
        ("receiver_window", 8, True),
        ("receiver_window", 5.4, True),
        ("receiver_window", 5.3, False),
        ("receiver_window", 12, True),
        ("receiver_window", 12.1, False),
        # A limit that gains nothing, or loses, may cost a tenth of the duration.
        ("send_buffer", 1, True),
        ("send_buffer", 1.1, False),
        ("capture", 0, True),
    ],
)
def test_a_cost_is_near_what_its_lift_gained(named: str, cost_s: float, *, is_near: bool) -> None:
    assert row(named, cost_s=cost_s).is_near("packets") is is_near


def test_the_tables_count_rows() -> None:
    rows = [
        row("receiver_window"),
        row("path_loss"),
        row("send_buffer"),
        row("send_buffer", confidence="likely", cost_s=0),
    ]
    assert "| sender | tcpwin, packets alone | 4 | 2 (50 %) | 1 (25 %) | 2 (50 %) | 1 (25 %) | 3 (75 %) |" in summary(
        rows
    )
    # Other tools only distinguish groups: loss and window differ, and a buffer is the sender's.
    assert "| tshark | 4 (100 %) |  |" in compare_tools(rows)
    assert confusion(rows, "sender", "packets").splitlines()[2:] == [
        "| path_loss | **1** |  |  |",
        "| receiver_window |  | **1** | 2 |",
    ]


def test_the_table_of_algorithms_counts_those_reported() -> None:
    pairs = [("reno", "reno"), ("reno", ""), ("bbr", ""), ("cubic", "reno")]
    rows = [replace(row("path_loss"), algorithm=name, reported=other) for name, other in pairs]
    assert algorithms(rows, "sender").splitlines() == [
        "| sends by \\ reported | bbr | cubic | reno | none reported |",
        "|---|---|---|---|---|",
        "| bbr |  |  |  | 1 |",
        "| cubic |  |  | 1 | 0 |",
        "| reno |  |  | **1** | 1 |",
    ]


@all_cases(
    ("changed", "alike", "is_right"),
    [
        (("receiver_window",), ("receiver_window", "path_rate"), True),
        (("send_buffer",), ("receiver_window",), False),
        ((), ("receiver_window",), False),
        # Nobody makes the path faster; a fix that gains something is welcome, one that gains nothing is not.
        ((), ("path_rate",), True),
        (("path_loss",), ("path_rate",), True),
        (("send_buffer",), ("path_rate",), False),
        ((), ("none",), True),
        (("receiver_window",), ("none",), False),
    ],
)
def test_a_fix_lifts_what_gained(changed: tuple[str, ...], alike: tuple[str, ...], *, is_right: bool) -> None:
    gains = {"path_rate": 8, "path_loss": 1, "send_buffer": 0, "receiver_window": 0}
    assert is_fix_right(changed, alike, gains, 10) is is_right


@all_cases(
    ("samples", "limits"),
    [
        ("### 1.0\n busy:100ms rwnd_limited:80ms(80.0%)\n### 2.0\n busy:900ms rwnd_limited:600ms(66.7%)\n", RECEIVER),
        ("### 1.0\n busy:900ms rwnd_limited:100ms(11.1%) sndbuf_limited:700ms(77.8%)\n", SEND_BUFFER),
        ("### 1.0\n busy:900ms\n", NETWORK),
        # After its end the socket is gone.
        ("### 1.0\n busy:900ms\n### 2.0\n", NETWORK),
        ("### 1.0\n busy:100ms\n", APPLICATION),
        ("### 1.0\nState\n", NOTHING),
    ],
)
def test_the_chronographs_are_read_from_the_last_sample(samples: str, limits: frozenset[str]) -> None:
    assert by_chronographs(samples, SECOND_NS) == limits


def test_the_chronographs_of_a_real_run() -> None:
    with zipfile.ZipFile(ROOT / "captures" / "bundles" / "slow-reader.zip") as members:
        samples = members.read("slow-reader/ss_sender.txt").decode()
    assert by_chronographs(samples, 30 * SECOND_NS) == RECEIVER


@pytest.mark.parametrize(("tool", "ask"), [("tcptrace", by_tcptrace), ("tshark", by_tshark)])
def test_what_others_print_is_read(tool: str, ask: object, tmp_path: Path) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    assert callable(ask)
    # A closing window, losses without a full window, and no connection.
    assert ask(LAB / "slow-reader.pcap.gz") == RECEIVER
    assert ask(LAB / "loss-1-percent.pcap.gz") == NETWORK
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert ask(empty) == NOTHING


@pytest.mark.nightly
def test_bundles_are_scored_by_their_truths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A world's two captures, as a run leaves them in its bundle."""
    number = 4
    truth = next(each for each in read_truths(1) if each.number == number)
    name = f"{world(1, number).name}-stock"
    with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as members:
        for end in ("sender", "receiver"):
            members.write(WORLDS / f"seed-1-{number:03}-{end}.pcap.gz", f"{name}/{end}.pcap.gz")
            members.writestr(f"{name}/ss_{end}.txt", "### 1.0\nState\n")
    rows = rows_of(tmp_path, 1)
    assert [(each.number, each.end, each.limit) for each in rows] == [
        (4, end, truth.result.limit) for end in ("sender", "receiver")
    ]
    for is_right in (Row.is_right, Row.is_owner_right, Row.is_fix_right, Row.is_near):
        assert all(is_right(each, "packets") for each in rows)
    assert rows[0].answers["ss"].limits == ()
    assert main([str(tmp_path), "--json"]) == 0
    assert [json.loads(line)["end"] for line in capsys.readouterr().out.splitlines()] == ["sender", "receiver"]
    assert main([str(tmp_path)]) == 0
    assert "packets alone | 1 | 1 (100 %) |" in capsys.readouterr().out
    assert main([]) == 2
    assert "name the folder" in capsys.readouterr().err
