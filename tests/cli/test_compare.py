"""`tcpwin compare`: text, JSON, exit status, snapshots of either side, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cases import all_cases
from cli.command import CAPTURES, KEEP_ALIVE, MANY_SHORT, SLOW_READER, TEXT, refused, tcpwin

from tcpwin.render.comparing.comparison import render_comparison

# The same transfer of 10 MB over 85 ms, without and with window scaling.
SLOW = CAPTURES / "lab" / "no-window-scaling.pcap.gz"
FAST = CAPTURES / "lab" / "window-scaling.pcap.gz"
BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"


def lines(*arguments: object, **more: Any) -> list[str]:
    return tcpwin("compare", *arguments, **more).stdout.decode().splitlines()


def test_text() -> None:
    """65,535 bytes per 85 ms are 6.17 Mbit/s; the rates are those in each capture's report."""
    told = lines(SLOW, FAST)
    assert told[:9] == [
        f"old  {SLOW}: 1 connection",
        f"new  {FAST}: 1 connection",
        "",
        "Better: goodput × 14.1 between first data and last ACK; whole duration 13.3 s → 1.03 s (-92 %).",
        "",
        "old #0, new #0  10.9.1.1:5201 server→client  better",
        "    limited by                 the client's receive window (97 % of the time, certain) → "
        "the server's congestion window (74 % of the time, likely)",
        "    cost of the limit          about 12.4 s → none",
        "    goodput                    6.03 Mbit/s → 84.9 Mbit/s (× 14.1)  better",
    ]
    assert "    payload                    10 MB → 10 MB" in told
    assert "    round trip                 85 ms → 85 ms" in told
    assert "    client's largest window    65.5 kB → 3.14 MB (× 48)" in told
    assert not [line for line in told if "retransmissions" in line or "window at zero" in line]
    # Only one figure for the problem: the verdict's.
    assert not [line for line in told if "time lost" in line or "time in limits" in line or "message delay" in line]
    assert told[-2:] == [
        "    gone  TW101 window-scaling-not-negotiated server→client  better",
        "    now: nothing to fix: limited by the server's congestion window (74 % of the time, likely). "
        "The congestion window was still growing.",
    ]
    back = lines(FAST, SLOW)
    assert back[-1].startswith("    Fix: Switch on window scaling on the client ")
    assert back[3] == "Worse: goodput × 0.071 between first data and last ACK; whole duration 1.03 s → 13.3 s (× 13)."
    assert back[8] == "    goodput                    84.9 Mbit/s → 6.03 Mbit/s (-93 %)  worse"
    assert (
        lines(FAST, SLOW, "--tolerance", "93%")[8] == "    goodput                    84.9 Mbit/s → 6.03 Mbit/s (-93 %)"
    )


def test_the_deciding_measure_is_named_unless_it_is_goodput() -> None:
    """At the receiver, lost segments appear once; the rate is nearly that of the sender's capture."""
    lossy = [CAPTURES / "wild" / f"lossy-path{part}" for part in (".pcapng.gz", "-receiver.pcap.gz")]
    told = lines(*lossy)
    assert told[3] == "Better: bytes retransmitted 1.16 % → 0.00 %; goodput × 1.09."
    assert (
        told[4] == "Both captures hold the same connection at the same time: "
        f"`tcpwin pair {lossy[0]} {lossy[1]}` shows what happened to its packets between the two points."
    )
    assert not [line for line in lines(SLOW, FAST) if "tcpwin pair" in line]


@all_cases(
    ("arguments", "status"),
    [
        ((SLOW, FAST, "--fail-on", "worse"), 0),
        ((FAST, SLOW, "--fail-on", "worse"), 1),
        ((FAST, SLOW, "--fail-on", "never"), 0),
        ((FAST, SLOW), 0),
        ((FAST, FAST, "--fail-on", "worse"), 0),
        ((FAST, SLOW, "--fail-on", "worse", "--tolerance", "0.9"), 1),
        # A gate must not pass because nothing could be compared.
        ((SLOW, KEEP_ALIVE, "--fail-on", "worse"), 1),
        ((SLOW, KEEP_ALIVE), 0),
        ((FAST, SLOW, "--fail-on", "worse", "--format", "json"), 1),
    ],
)
def test_exit_status(arguments: tuple[object, ...], status: int) -> None:
    done = tcpwin("compare", *arguments)
    assert (done.returncode, done.stderr) == (status, b"")


def test_json() -> None:
    read = json.loads(tcpwin("compare", SLOW, FAST, "--format", "json").stdout, parse_constant=pytest.fail)
    assert list(read) == [
        "schema",
        "old",
        "new",
        "verdict",
        "pairs",
        "counts",
        "unmatched_old",
        "unmatched_new",
        "unmatched_old_count",
        "unmatched_new_count",
        "goodput_ratio",
        "path_changes",
        "findings",
    ]
    assert (read["schema"], read["old"], read["new"]) == ("tcpwin/comparison/1", str(SLOW), str(FAST))
    [each] = read["pairs"]
    assert each["match"] == {"old": 0, "new": 0, "is_similar": True}
    assert (each["direction"], each["verdict"], read["verdict"]) == ("b_to_a", "better", "better")
    goodput = each["changes"][0]
    assert (goodput["name"], goodput["verdict"]) == ("goodput_bps", "better")
    assert read["goodput_ratio"] == goodput["new"] / goodput["old"]


def test_a_change_is_compared_with_what_it_was_predicted_to_bring() -> None:
    change = ("--change", "receiver.tcp_rmem=1M")
    narrow, wide = (CAPTURES / "runs" / f"rmem_{size}_196ms" / "snd.pcap.gz" for size in ("64k", "1024k"))
    told = lines(narrow, wide, *change)
    assert told[3].startswith("Better: ")
    assert told[4].startswith("Change: With receiver.tcp_rmem=1M, ")
    assert ") were predicted instead of 1.26 Mbit/s; it carries 18 Mbit/s: more than predicted. Now " in told[4]
    assert told[5].startswith("    But it carried 3 MB before and 15 MB after, ")
    read = json.loads(tcpwin("compare", narrow, wide, *change, "--format", "json").stdout, parse_constant=pytest.fail)
    effect = read["effect"]
    assert (effect["verdict"], effect["changes"]) == ("more than predicted", ["receiver.tcp_rmem=1M"])
    low, likely, high = (effect["predicted"][name] for name in ("low", "likely", "high"))
    # A buffer of 1 MiB allows 524,288 bytes in 196 ms, but 3 MB end while the window still grows.
    assert effect["old"] < low <= likely <= high < 524_288 * 8 / 0.196
    assert effect["prediction"]["gain_ns"] > 0
    assert f"Change: {effect['text']}" == told[4]


def test_a_change_that_cannot_be_judged_leaves_the_comparison() -> None:
    change = ("--change", "receiver.tcp_rmem=6M")
    done = tcpwin("compare", SLOW_READER, MANY_SHORT, *change)
    assert done.returncode == 0
    assert "Unmatched: " in done.stdout.decode()
    assert "warning: the change cannot be judged: no connection of " in done.stderr.decode()
    read = json.loads(tcpwin("compare", SLOW_READER, MANY_SHORT, *change, "--format", "json").stdout)
    assert read["verdict"] == "unmatched"
    assert read["effect"]["refused"].startswith("no connection of ")


@all_cases(
    ("arguments", "message"),
    [
        ((SLOW, FAST, "--change", "tcp_rmem=6M"), "'tcp_rmem' names no end"),
        ((SLOW, FAST, "--change", "receiver.tcp_rmem"), "is not a setting with its value"),
        ((SLOW, FAST, "--change", "sender.tcp_rmem=6M"), "bounds nothing here"),
        (
            (SLOW, FAST, "--change", "receiver.tcp_rmem=6M", "--change", "client.tcp_rmem=8M"),
            "tcp_rmem of the receiver is given twice",
        ),
    ],
)
def test_an_invalid_change_is_a_usage_error(arguments: tuple[object, ...], message: str) -> None:
    done = tcpwin("compare", *arguments)
    assert done.returncode == 2
    assert message in done.stderr.decode()


def test_without_partners() -> None:
    told = lines(SLOW_READER, MANY_SHORT)
    assert told[3].startswith("Unmatched: ")
    place = told.index("Without a match")
    assert told[place + 1] == "    old #0  10.9.2.2:36984 → 10.9.1.1:5201   0 B client→server, 6 MB server→client"
    assert [line[:10] for line in told[place + 2 : place + 7]] == [f"    new #{number}" for number in range(5)]
    assert told[place + 7].startswith("    new: ")
    assert told[place + 7].endswith(" more")
    assert len(told) == place + 8


def test_limit() -> None:
    told = lines(MANY_SHORT, MANY_SHORT, "--limit", 2)
    assert sum(line.startswith("old #") for line in told) == 2
    assert [line for line in told if line.endswith(" more pairs not shown: --limit N shows more.")]
    assert not [line for line in lines(SLOW, FAST, "--limit", 0) if line.startswith("old #")]


def test_bundles_and_snapshots_of_either_side(tmp_path: Path) -> None:
    assert lines(BUNDLE, BUNDLE)[3] == "Same: goodput × 1."
    assert lines(BUNDLE, SLOW_READER, "--capture", "sender.pcap.gz")[0] == (
        f"old  {BUNDLE}: slow-reader/sender.pcap.gz: 1 connection"
    )
    assert refused("compare", BUNDLE, SLOW_READER, "--capture", "absent").startswith(f"tcpwin: {BUNDLE}: no captures ")
    snapshots = []
    for name in ("old", "new"):
        snapshots.append(tmp_path / f"{name}.txt")
        snapshots[-1].write_text("net.ipv4.tcp_rmem = 4096 131072 6291456\nwhat is this\n", encoding="utf8")
    done = tcpwin("compare", "--with-old", snapshots[0], "--with-new", snapshots[1], "--", SLOW, FAST)
    assert done.returncode == 0
    assert done.stderr.decode() == "".join(
        f"tcpwin: warning: {path}: 1 line not understood (first: line 2)\n" for path in snapshots
    )
    one = tcpwin("compare", SLOW, FAST, "--with-new", snapshots[0], snapshots[1])
    assert one.stderr.count(b"\n") == 2


def test_standard_input_is_one_of_them() -> None:
    told = lines("-", FAST, input=SLOW.read_bytes())
    assert told[0] == "old  standard input: 1 connection"
    assert told[3] == "Better: goodput × 14.1 between first data and last ACK; whole duration 13.3 s → 1.03 s (-92 %)."


@all_cases(
    ("arguments", "words"),
    [
        ([SLOW], "Missing argument 'NEW'"),
        (["-", "-"], "standard input (-) can be read once"),
        ([SLOW, FAST, "--capture", "x"], "--capture names a capture in a bundle"),
        ([SLOW, FAST, "--tolerance", "much"], "'much' is not a share such as 10% or 0.1."),
        ([SLOW, FAST, "--tolerance", "1.5"], "'1.5' is not a share such as 10% or 0.1."),
        ([SLOW, FAST, "--tolerance", "-5%"], "'-5%' is not a share such as 10% or 0.1."),
        ([SLOW, FAST, "--fail-on", "better"], "'better' is not one of 'worse', 'never'"),
        ([SLOW, FAST, "--format", "sarif"], "'sarif' is not one of 'text', 'json'"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[object], words: str) -> None:
    assert words in " ".join(refused("compare", *arguments, status=2).split())


def test_unreadable_input_exits_with_3() -> None:
    assert refused("compare", SLOW, TEXT).startswith(f"tcpwin: {TEXT}: ")
    assert refused("compare", TEXT, SLOW).startswith(f"tcpwin: {TEXT}: ")


def test_text_of_every_kind_of_pair(tmp_path: Path) -> None:
    """Handwritten lines for a pair by order, a changed path, and findings of all kinds."""
    from report.made_findings import NOTE, STALL, found
    from stories.story import Story

    import tcpwin as package
    from tcpwin.limits import compare

    def capture(name: str, rounds: int, rtt: float) -> package.Analysis:
        story = Story().handshake(rtt)
        for _ in range(rounds):
            story.burst("a", 10).wait(rtt).ack("b")
        return package.analyze(story.write(tmp_path, name))

    old, new = capture("old", 8, 0.04), capture("new", 40, 0.08)
    comparison = compare(old, new, old_findings=found(STALL), new_findings=found(NOTE), tolerance=0.1)
    told = list(render_comparison(old, new, comparison))
    assert told[:6] == [
        f"old  {tmp_path}/old.pcap: 1 connection",
        f"new  {tmp_path}/new.pcap: 1 connection",
        "",
        "Worse: goodput × 0.506.",
        "The path's round trip differs in 1 pair: the path may explain part of the difference.",
        "",
    ]
    assert (
        told[6] == "old #0, new #0  10.0.0.2:9000 client→server  worse   "
        "(paired by order: neither size nor duration is similar)"
    )
    assert told[7].startswith("    limited by  ")
    assert told[8] == "    cost of the limit          none → about 1.3 s"
    assert told[9] == "    goodput                    2.85 Mbit/s → 1.44 Mbit/s (-49 %)  worse"
    assert told[-4:] == [
        "",
        "Findings of all connections",
        "    gone  TW901 made-stall, time lost 6.1 s → 0  better",
        "    new   TW902 made-note, rate lost 0 bit/s → 93.5 Mbit/s",
    ]
