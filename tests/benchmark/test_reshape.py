"""A reshaped capture matches its name, according to tshark too."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import reshape
from bench.captures import build_example

import tcpwin

# They show faults of the benchmark, not of the product.
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reshape") / "A.pcap"
    command = [str(build_example("generate", release=False)), "--shape", "A", "--packets", "3000", "--connections", "9"]
    subprocess.run([*command, str(path)], check=True, capture_output=True)
    return path


@pytest.fixture
def made(original: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "made.pcap"
    assert reshape.reshape(original, path, getattr(reshape, request.param)) > 0
    return path


def fields(path: Path, *names: str) -> Iterator[list[str]]:
    wanted = [part for name in names for part in ("-e", name)]
    command = ["tshark", "-r", str(path), "-T", "fields", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.parametrize("made", ["in_ipv6", "in_vxlan"], indirect=True)
def test_the_same_connections_in_other_headers(original: Path, made: Path) -> None:
    before, after = tcpwin.analyze(original), tcpwin.analyze(made)
    assert len(after) == len(before)
    for one, other in zip(before.connections, after.connections, strict=True):
        assert other.a_to_b.payload_bytes == one.a_to_b.payload_bytes
        assert other.b_to_a.retransmissions == one.b_to_a.retransmissions
    sequence = ("tcp.seq_raw", "tcp.ack_raw", "tcp.window_size_value", "tcp.len")
    assert list(fields(made, *sequence)) == list(fields(original, *sequence))


@pytest.mark.parametrize(
    ("made", "field", "values"),
    [
        ("without_syns", "tcp.flags.syn", {"0", "False"}),
        ("lone_syns", "tcp.flags", {"0x0002"}),
        ("without_timestamps", "tcp.options.timestamp.tsval", {""}),
    ],
    indirect=["made"],
)
def test_only_these_values_are_left(made: Path, field: str, values: set[str]) -> None:
    assert {each[0] for each in fields(made, field)} <= values


@pytest.mark.parametrize("made", ["swapped"], indirect=True)
def test_pairs_change_places(original: Path, made: Path) -> None:
    names = ("tcp.stream", "tcp.seq_raw", "tcp.ack_raw")
    before, after = ([tuple(each[1:]) for each in fields(path, *names)] for path in (original, made))
    assert after[:4] == [before[1], before[0], before[3], before[2]]
    times = [[each[0] for each in fields(path, "frame.time_epoch")] for path in (original, made)]
    assert times[0] == times[1]
