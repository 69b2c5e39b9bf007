"""Every ladder in this folder holds: tcpwin judges the packets it builds as it says.

Other tests compare the packets with tshark, and their construction with scapy, so no truth rests on an error of the
builder.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import ladder
import pytest
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6
from scapy.layers.l2 import Ether

LADDERS = sorted(Path(__file__).parent.glob("*.ladder"))
FIELDS = ("frame.number", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags", "tcp.window_size_value")
PREFERENCES = ("tcp.desegment_tcp_streams:FALSE", "tcp.relative_sequence_numbers:TRUE")


def read(path: Path) -> ladder.Ladder:
    return ladder.parse(path.read_text(encoding="utf8"), path.stem)


@pytest.mark.parametrize("path", LADDERS, ids=lambda path: path.stem)
def test_ladder_holds(path: Path, tmp_path: Path) -> None:
    ladder.check(read(path), tmp_path)


def test_there_are_ladders_and_each_states_something() -> None:
    assert len(LADDERS) >= 45
    for path in LADDERS:
        read_ladder = read(path)
        assert read_ladder.claims or any(step.expected for step in read_ladder.steps), path.name


def test_a_false_ladder_is_refused(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "window-full-exact.ladder").read_text(encoding="utf8")
    for true, false in (
        ("events window_full flight 5840", "events window_full flight 5839"),
        ("events - flight 1460", "events window_full flight 1460"),
        ("from_a.window_full == 1", "from_a.window_full == 2"),
        ("from_a.window_full == 1", "from_a.no_such_attribute == 2"),
    ):
        assert text.count(true) == 1
        with pytest.raises(ladder.LadderMismatchError, match=">>"):
            ladder.check(ladder.parse(text.replace(true, false), "false"), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "0.0 a > b PA seq 1 len 10",
        "0.0 a > b X seq 1",
        "0.0 a > a S seq 0",
        "0.0 a > b S seq 0 win 9 => flihgt 1",
        "isn c 5",
    ],
)
def test_a_mistake_in_a_ladder_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(ladder.LadderError, match="line 2"):
        ladder.parse(f"Prose.\n    {line}\n")


def test_tshark_reads_what_the_ladders_describe(tmp_path: Path, tool: Callable[[str], str]) -> None:
    ladders = [read(path) for path in LADDERS]
    merged = ladder.Ladder(name="all", lines=[], steps=[step for one in ladders for step in one.steps])
    merged.write_pcap(tmp_path / "all.pcap")
    command = [tool("tshark"), "-n", "-r", str(tmp_path / "all.pcap"), "-Y", "tcp && !icmp && !icmpv6", "-T", "fields"]
    command += [word for name in FIELDS for word in ("-e", name)]
    command += [word for preference in PREFERENCES for word in ("-o", preference)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seen = {int(row[0]): row[1:] for row in (line.split("\t") for line in output.splitlines())}
    frame = 0
    for one in ladders:
        for step in one.steps:
            frame += 1
            assert (frame in seen) == step.is_segment, f"{one.name}, line {step.line}: {step.text}"
            if step.is_segment and " copy" not in step.text:
                assert seen[frame] == described(one, step), f"{one.name}, line {step.line}: {step.text}"


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.nightly)], ids=["some", "all"])
@pytest.mark.parametrize("version", [4, 6])
def test_scapy_builds_the_same_packets(version: int, step: int) -> None:
    """Recompute lengths, offsets and checksums of every packet of the ladders, and of each as IPv6."""
    fields = {Ether: (), IP: ("len", "ihl", "chksum"), IPv6: ("plen",), TCP: ("dataofs", "chksum"), ICMP: ("chksum",)}
    fields |= {ICMPv6DestUnreach: ("cksum",)}
    layers = set()
    for path in [each for place, each in enumerate(LADDERS) if place % step == 0 or " icmp" in each.read_text()]:
        text = path.read_text(encoding="utf8")
        for each in ladder.parse(text if version == 4 else f"    ip 6\n{text}", path.stem).steps:
            packet = Ether(each.packet)
            for layer, names in fields.items():
                # Leave the packet quoted in an ICMP error unchanged.
                if found := packet.getlayer(layer):
                    layers.add(layer)
                    for name in names:
                        found.delfieldval(name)
            assert bytes(packet) == each.packet, f"{path.name}, line {each.line}: {each.text}"
    assert layers >= {Ether, TCP, *((IP, ICMP) if version == 4 else (IPv6, ICMPv6DestUnreach))}


def described(one: ladder.Ladder, step: ladder.Step) -> list[str]:
    """Return the step's notation derived from its packet, independently of the builder."""
    isn, window = {"a": 1_000_000, "b": 5_000_000}, dict.fromkeys("ab", 0)
    for line in one.lines[: step.line]:
        if not line.startswith(" "):
            continue
        words = line.partition("=>")[0].split()
        if words and words[0] == "isn":
            isn[words[1]] = int(words[2])
        elif words and words[0][0].isdigit() and "win" in words and "S" not in words[4]:
            window[words[1]] = int(words[words.index("win") + 1])
    words = step.text.partition("=>")[0].split()
    src, dst, flags = words[1], words[3], words[4]
    fields = dict(zip(words[5::2], words[6::2], strict=False))
    bits = sum(bit for letter, bit in (("F", 1), ("S", 2), ("R", 4), ("P", 8), ("A", 16)) if letter in flags)
    raw_window = int(fields.get("win", 0 if "R" in flags else window[src]))
    seq = (isn[src] + int(fields["seq"])) % 2**32
    ack = (isn[dst] + int(fields["ack"])) % 2**32 if "ack" in fields else 0
    return [str(seq), str(ack), fields.get("len", "0"), f"0x{bits:04x}", str(raw_window)]
