"""The generator's captures are reproducible, valid, and as large as requested."""

import hashlib
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.captures import build_example
from bench.tools import write_tshark_profile

# They show faults of the benchmark, not of the product.
pytestmark = pytest.mark.nightly

Generate = Callable[..., Path]
ReadFields = Callable[..., list[list[str]]]

PACKETS = 20_000
CONNECTIONS = 40
MIXED = ("--packets", str(PACKETS), "--connections", str(CONNECTIONS))
# 40 % have one packet, 20 % two, 40 % ten or eleven: about five packets each.
TINY_CONNECTIONS = 4_000
TINY = ("--connections", str(TINY_CONNECTIONS))
GOOD = "1"
SYN, ACK, FIN, RST = 0x02, 0x10, 0x01, 0x04


@pytest.fixture(scope="module")
def generator(tool: Callable[[str], str]) -> Path:
    """Build the generator unoptimised, where Rust checks its arithmetic."""
    tool("cargo")
    return build_example("generate", release=False)


@pytest.fixture(scope="module")
def generate(generator: Path, tmp_path_factory: pytest.TempPathFactory) -> Generate:
    """Return a function that runs the generator and returns the capture's path."""
    folder = tmp_path_factory.mktemp("generated")

    def run(name: str, *arguments: str) -> Path:
        path = folder / name
        subprocess.run([generator, *arguments, path], check=True, capture_output=True)
        return path

    return run


@pytest.fixture(scope="module")
def read_fields(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> ReadFields:
    """Return the fields of every frame as tshark sees them, with checksums verified and TCP as the top layer."""
    tshark = tool("tshark")
    environment = {**os.environ, **write_tshark_profile(tmp_path_factory.mktemp("profile"))}

    def read(path: Path, *fields: str) -> list[list[str]]:
        command = [tshark, "-r", path, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
        command += ["-T", "fields", *(part for name in fields for part in ("-e", name))]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return [line.split("\t") for line in done.stdout.splitlines()]

    return read


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("arguments", [("--shape", "A", *MIXED), ("--shape", "D", *TINY)], ids=["mixed", "tiny"])
def test_a_seed_identifies_one_capture(generate: Generate, arguments: tuple[str, ...]) -> None:
    first = sha256(generate("first.pcap", *arguments, "--seed", "7"))
    assert sha256(generate("again.pcap", *arguments, "--seed", "7")) == first
    assert sha256(generate("other.pcap", *arguments, "--seed", "8")) != first


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("whole.pcap", ("--shape", "C", *MIXED)),
        ("whole.pcapng", ("--shape", "E", *MIXED, "--snaplen", "0")),
        ("tiny.pcap", ("--shape", "D", *TINY, "--snaplen", "0")),
    ],
)
def test_whole_packets_have_good_checksums(
    generate: Generate, read_fields: ReadFields, name: str, arguments: tuple[str, ...]
) -> None:
    path = generate(name, *arguments)
    frames = read_fields(path, "ip.checksum.status", "tcp.checksum.status", "_ws.malformed", "tcp.len")
    assert Counter((ip, tcp, malformed) for ip, tcp, malformed, _ in frames) == {(GOOD, GOOD, ""): len(frames)}
    # The checksum treats an odd payload length differently from an even one.
    assert {int(length) % 2 for *_, length in frames if length != "0"} == {0, 1}


@pytest.mark.parametrize("shape", ["A", "C", "E"])
def test_mixed_captures_have_the_packets_and_connections_asked_for(
    generate: Generate, read_fields: ReadFields, shape: str
) -> None:
    path = generate(f"{shape}.capture", "--shape", shape, *MIXED)
    frames = read_fields(path, "tcp.stream", "frame.cap_len", "frame.len", "_ws.malformed")
    assert len(frames) == PACKETS
    assert {int(stream) for stream, *_ in frames} == set(range(CONNECTIONS))
    assert {malformed for *_, malformed in frames} == {""}
    snaplen = 1514 if shape == "C" else 96
    assert all(int(captured) == min(int(length), snaplen) for _, captured, length, _ in frames)
    assert max(int(length) for _, _, length, _ in frames) == 1514


def test_tiny_connections_are_scans_and_short_exchanges(generate: Generate, read_fields: ReadFields) -> None:
    path = generate("flows.pcap", "--shape", "D", *TINY)
    frames = read_fields(path, "tcp.stream", "tcp.flags", "_ws.malformed")
    flags: dict[int, list[int]] = {}
    for stream, value, malformed in frames:
        assert malformed == ""
        flags.setdefault(int(stream), []).append(int(value, 16))
    assert set(flags) == set(range(TINY_CONNECTIONS))
    kinds: Counter[str] = Counter()
    for stream_flags in flags.values():
        if stream_flags == [SYN]:
            kinds["silence"] += 1
        elif stream_flags == [SYN, RST | ACK]:
            kinds["refusal"] += 1
        else:
            assert stream_flags[:3] == [SYN, SYN | ACK, ACK]
            assert stream_flags[-3:] == [FIN | ACK, FIN | ACK, ACK]
            assert len(stream_flags) in (10, 11)
            kinds["exchange"] += 1
    # Drawn 4 : 2 : 4; four standard deviations of 4,000 draws are 124.
    assert kinds["silence"] == pytest.approx(1600, abs=124)
    assert kinds["refusal"] == pytest.approx(800, abs=102)


def test_pcapng_holds_the_packets_of_the_pcap(generate: Generate, read_fields: ReadFields) -> None:
    fields = ("frame.time_epoch", "frame.len", "ip.src", "tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "tcp.options")
    pcap = read_fields(generate("same.pcap", "--shape", "A", *MIXED), *fields)
    assert read_fields(generate("same.pcapng", "--shape", "E", *MIXED), *fields) == pcap


def test_the_events_the_benchmark_needs_occur(generate: Generate, read_fields: ReadFields) -> None:
    path = generate("long.pcap", "--shape", "A", "--packets", "100000", "--connections", "20")
    names = (
        "tcp.analysis.retransmission",
        "tcp.analysis.fast_retransmission",
        "tcp.analysis.zero_window",
        "tcp.analysis.window_full",
        "tcp.analysis.keep_alive",  # tshark's name for Linux's zero-window probe
        "tcp.options.sack_le",
        "tcp.options.wscale.shift",
        "tcp.options.timestamp.tsval",
        "tcp.flags.fin",
        "tcp.flags.reset",
    )
    frames = read_fields(path, *names)
    # tshark leaves an absent field empty and writes an unset flag as 0.
    counts = Counter(name for frame in frames for name, value in zip(names, frame, strict=True) if value.strip("0"))
    assert set(counts) == set(names)
    # 0.5 % of the data segments, which are two of three packets; lost ones are resent.
    assert 0.001 < counts["tcp.analysis.retransmission"] / len(frames) < 0.01


@pytest.mark.parametrize(
    "arguments",
    [(), ("--shape", "Z", "x.pcap"), ("--shape", "A"), ("--shape", "A", "--seed", "many", "x.pcap")],
    ids=["nothing", "unknown shape", "no file", "no number"],
)
def test_wrong_usage_is_an_error(generator: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run([generator, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: generate")
