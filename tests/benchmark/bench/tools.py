"""The compared tools, each with its command for one capture."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

TCPWIN = "tcpwin"
TCPWIN_ONE = "tcpwin --threads 1"
TCPWIN_TWO = "tcpwin --threads 2"
JSON = "tcpwin --json"
CSV = "tcpwin packets, csv"
PARQUET = "tcpwin packets, Parquet"
EARLIER = "tcpwin --threads 1, earlier"
LIBRARY = "library: analyze"
POLARS = "library: to_polars"
TCPTRACE_ALL = "tcptrace -l -r -n"
TCPTRACE = "tcptrace -n"
TSHARK = "tshark -T fields"
TCPDUMP = "tcpdump -w"
INFLATE = "inflate alone"
GZIP = "gzip -dc"
PYTHON = "python3 -c pass"

# The most common columns.
COLUMNS = (
    *("id", "start_ns", "duration_ns", "a_address", "a_port", "b_address", "b_port", "handshake_rtt_ns"),
    *(
        f"{direction}.{name}"
        for direction in ("a_to_b", "b_to_a")
        for name in ("segments", "payload_bytes", "acked_bytes", "retransmissions", "flight_max_bytes", "rtt_min_ns")
    ),
)
ANALYZE = "import sys, polars, tcpwin; found = tcpwin.analyze(sys.argv[1], threads=1)"

# Equal work for tshark: tcpwin's per-segment results, and no other dissector.
TSHARK_PROTOCOLS = ("frame", "eth", "ethertype", "ip", "tcp", "data")
TSHARK_FIELDS = ("frame.number", "tcp.stream", "tcp.window_size", "tcp.analysis.bytes_in_flight", "tcp.analysis.flags")
PEERS = ("tcptrace", "tshark", "tcpdump")


@dataclass(frozen=True)
class Tool:
    name: str
    command: Callable[[Path], list[str]]
    environment: dict[str, str] = field(default_factory=dict)


def own_tcpwin() -> str:
    """Return the tcpwin installed with this Python, shell-quoted: the one on the path may differ or be missing."""
    return shlex.quote(str(Path(sys.executable).parent / "tcpwin"))


def missing_programs(programs: Iterable[str]) -> list[str]:
    """Return the programs that are not installed."""
    return [program for program in programs if shutil.which(program) is None]


def all_tools(tcpwin: list[str], earlier: list[str], inflate: Path, folder: Path) -> dict[str, Tool]:
    """Return every tool by name; write tshark's profile, and later a Parquet file, into the folder."""
    parquet, tshark_profile = folder / "packets.parquet", folder / "tshark-profile"
    environment = write_tshark_profile(tshark_profile)
    fields = [part for name in TSHARK_FIELDS for part in ("-e", name)]
    desegment = ["-o", "tcp.desegment_tcp_streams:FALSE"]
    tools = [
        Tool(TCPWIN, lambda path: [*tcpwin, "analyze", str(path)]),
        Tool(TCPWIN_ONE, lambda path: [*tcpwin, "analyze", "--threads", "1", str(path)]),
        Tool(TCPWIN_TWO, lambda path: [*tcpwin, "analyze", "--threads", "2", str(path)]),
        Tool(JSON, lambda path: [*tcpwin, "analyze", "--threads", "1", "--json", str(path)]),
        Tool(EARLIER, lambda path: [*earlier, "analyze", "--threads", "1", str(path)]),
        Tool(CSV, lambda path: [*tcpwin, "packets", str(path)]),
        Tool(PARQUET, lambda path: [*tcpwin, "packets", "--format", "parquet", "-o", str(parquet), str(path)]),
        Tool(LIBRARY, lambda path: [sys.executable, "-c", ANALYZE, str(path)]),
        Tool(
            POLARS,
            lambda path: [
                *(sys.executable, "-c", f"{ANALYZE}; found.connections.to_polars(columns={list(COLUMNS)})"),
                str(path),
            ],
        ),
        Tool(TCPTRACE_ALL, lambda path: ["tcptrace", "-l", "-r", "-n", str(path)]),
        Tool(TCPTRACE, lambda path: ["tcptrace", "-n", str(path)]),
        Tool(TSHARK, lambda path: ["tshark", "-r", str(path), *desegment, "-T", "fields", *fields], environment),
        Tool(TCPDUMP, lambda path: ["tcpdump", "-r", str(path), "-w", "/dev/null"]),
        Tool(INFLATE, lambda path: [str(inflate), str(path)]),
        Tool(GZIP, lambda path: ["gzip", "-dc", str(path)]),
        Tool(PYTHON, lambda _: [sys.executable, "-c", "pass"]),
    ]
    return {tool.name: tool for tool in tools}


def write_tshark_profile(folder: Path) -> dict[str, str]:
    """Write a profile that disables all but the needed protocols; return the environment that selects it."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["tshark", "-G", "protocols"], capture_output=True, text=True, check=True)
    # One protocol per line: name, short name, filter name, and flags.
    names = [line.split("\t")[2] for line in listed.stdout.splitlines() if line.count("\t") >= 2]
    disabled = [name for name in names if name not in TSHARK_PROTOCOLS]
    (folder / "disabled_protos").write_text("".join(f"{name}\n" for name in disabled))
    return {"WIRESHARK_CONFIG_DIR": str(folder)}


def versions(tcpwin: list[str]) -> dict[str, str]:
    """Return the first line with a version that each program prints."""
    asked = {"tcpwin": [*tcpwin, "--version"], "tcptrace": ["tcptrace", "-v"]}
    asked |= {"tshark": ["tshark", "--version"], "tcpdump": ["tcpdump", "--version"]}
    found = {}
    for name, command in asked.items():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if any(c.isdigit() for c in line)]
        found[name] = lines[0].strip() if lines else "unknown"
    return found
