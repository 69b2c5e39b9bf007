"""`tcpwin pair`: the answer on one screen, the document, the table."""

from __future__ import annotations

import json
from pathlib import Path

import polars
from cli.command import CAPTURES, refused, tcpwin

BUNDLE = CAPTURES / "reference" / "idle-restart-on-stock.zip"
RUN = CAPTURES / "runs" / "loss1_cubic_sack1"
BOTH = (RUN / "snd.pcap.gz", RUN / "rcv.pcap.gz")


def test_the_first_lines_say_where_packets_were_lost() -> None:
    lines = tcpwin("pair", *BOTH).stdout.decode().splitlines()
    [answer] = [line for line in lines if line.startswith("Lost between a and b")]
    assert "59 of 5,586 packets" in answer
    assert lines.index(answer) < 5


def test_losses_come_first_whichever_capture_was_named_first() -> None:
    lines = tcpwin("pair", *BOTH[::-1]).stdout.decode().splitlines()
    said = [line for line in lines if line.startswith("Lost between")]
    assert [line.split(":")[0] for line in said] == ["Lost between b and a", "Lost between a and b"]
    assert "59 of 5,586 packets" in said[0]


def test_a_bundle_alone() -> None:
    done = tcpwin("pair", BUNDLE)
    assert done.returncode == 0
    assert "No packet was lost" in done.stdout.decode()


def test_help_names_the_question() -> None:
    listed = tcpwin("--help").stdout.decode()
    [line] = [line for line in listed.splitlines() if line.split()[:1] == ["pair"]]
    assert "packets lost" in line
    assert "bundle" in tcpwin("pair", "--help").stdout.decode()


def test_json() -> None:
    document = json.loads(tcpwin("pair", *BOTH, "--json").stdout)
    assert document["schema"] == "tcpwin/pair/1"
    assert [each["lost"] for each in document["connections"][0]["directions"]] == [0, 59]


def test_packets_as_parquet(tmp_path: Path) -> None:
    out = tmp_path / "packets.parquet"
    assert tcpwin("pair", *BOTH, "--packets", out).returncode == 0
    table = polars.read_parquet(out)
    assert (table["fate"] == "lost").sum() == 59


def test_standard_input_as_one_of_two() -> None:
    done = tcpwin("pair", "-", BOTH[1], input=BOTH[0].read_bytes())
    assert "59 of 5,586 packets" in done.stdout.decode()


def test_wrong_usage() -> None:
    assert "bundle" in refused("pair", BOTH[0])
    assert "read once" in refused("pair", "-", "-", status=2)
    assert "1 capture" in refused("pair", CAPTURES / "bundles" / "slow-reader.zip")
    assert "slow-reader.zip" in refused("pair", CAPTURES / "bundles")
    assert "packets.csv" in refused("pair", *BOTH, "--packets", "packets.csv", status=2)
    assert "ladder.txt has no known extension" in refused("pair", *BOTH, "-o", "ladder.txt", status=2)
    assert "--capture-a needs a bundle" in refused("pair", *BOTH, "--capture-a", "x", status=2)
    assert "no-such" in refused("pair", BOTH[0], "no-such.pcap")
    assert "no connection 7" in refused("pair", *BOTH, "--connection", 7)


def test_a_bundle_of_several_captures_needs_a_choice(tmp_path: Path) -> None:
    """The command that the message suggests works."""
    for name, path in (("snd", BOTH[0]), ("rcv", BOTH[1]), ("third", BOTH[1])):
        (tmp_path / f"{name}.pcap.gz").write_bytes(path.read_bytes())
    answer = "59 of 5,586 packets"
    assert "choose one (--capture-b NAME): " in refused("pair", BOTH[0], tmp_path)
    assert answer in tcpwin("pair", BOTH[0], tmp_path, "--capture-b", "rcv.pcap.gz").stdout.decode()
    assert "choose two (--capture-a NAME, --capture-b NAME)" in refused("pair", tmp_path)
    chosen = ("--capture-a", "snd.pcap.gz", "--capture-b", "third.pcap.gz")
    assert answer in tcpwin("pair", tmp_path, *chosen).stdout.decode()
    assert "no captures named fourth" in refused("pair", BOTH[0], tmp_path, "--capture-b", "fourth")


def test_one_connection_alone() -> None:
    run = CAPTURES / "runs" / "iperf3_300ms_20mbit_512m2"
    both = [run / "snd.pcap.gz", run / "rcv.pcap.gz"]
    assert "\n#1  " in tcpwin("pair", *both).stdout.decode()
    told = tcpwin("pair", *both, "--connection", 0).stdout.decode()
    assert "\n#0  " in told
    assert "\n#1  " not in told


def test_the_capture_is_spared() -> None:
    before = BOTH[0].read_bytes()
    refused("pair", *BOTH, "--packets", BOTH[0], status=2)
    assert BOTH[0].read_bytes() == before


def test_a_figure(tmp_path: Path) -> None:
    out = tmp_path / "ladder.json"
    assert tcpwin("pair", *BOTH, "-o", out).returncode == 0
    names = {trace["name"] for trace in json.loads(out.read_text())["data"]}
    assert {"data", "ACKs", "lost"} <= names
    assert "no connection 7" in refused("pair", *BOTH, "-o", out, "--connection", 7)
    assert "nothing to draw" in refused("pair", BOTH[0], CAPTURES / "lab" / "slow-reader.pcap.gz", "-o", out)


def test_a_report(tmp_path: Path) -> None:
    out = tmp_path / "pair.html"
    assert tcpwin("pair", *BOTH, "-o", out).returncode == 0
    page = out.read_text(encoding="utf8")
    assert "Lost between a and b: 59 of 5,586 packets" in page
    assert "Limited by loss on the path" in page
    assert "no connection 7" in refused("pair", *BOTH, "-o", out, "--connection", 7)
    assert out.read_text(encoding="utf8") == page
