"""Nothing is sent: strace shows that no socket is opened when a filter of a command or an agent names a host."""

import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.command import CAPTURES, TCPWIN
from reference import NO_RIGHT

from tcpwin.errors import FilterError
from tcpwin.offline import AF_UNIX, run_offline
from tcpwin.sources import libpcap

SLOW = "lab/slow-reader.pcap.gz"
NAMES = "host secretdata"


def never() -> None:
    pytest.fail("this kernel can deny sockets")


def traced(
    strace: str, tmp_path: Path, *arguments: object, said: str = "", until: str | None = None
) -> tuple[str, list[str]]:
    """Run tcpwin under strace; return its output, and its system calls that concern the network.

    Args:
        said: its input, which ends once its output contains `until`.
    """
    log = tmp_path / "calls"
    program = [strace, "-f", "--seccomp-bpf", "-e", "trace=%network", "-o", log, TCPWIN, *map(str, arguments)]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(said)
        process.stdin.flush()
        output = ""
        for line in process.stdout:
            output += line
            if until is not None and until in line:
                process.stdin.close()
    if "ptrace" in output or not log.exists():
        pytest.skip(f"{NO_RIGHT} trace others")
    return output, log.read_text().splitlines()


def sent(calls: list[str]) -> list[str]:
    """Calls that opened a socket or connected one; pairs of sockets (socketpair(2)) stay within the process."""
    return [call for call in calls if " connect(" in call or (" socket(" in call and " = -1 EACCES" not in call)]


def test_a_filter_with_a_name_sends_nothing(tool: Callable[[str], str], tmp_path: Path) -> None:
    said, calls = traced(tool("strace"), tmp_path, "analyze", CAPTURES / SLOW, "--filter", NAMES)
    assert "unknown host 'secretdata'" in said
    assert any("EACCES" in call for call in calls), "libpcap tried to look it up"
    assert sent(calls) == []


def test_an_agents_filter_sends_nothing(tool: Callable[[str], str], tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"name": "analyze_capture", "arguments": {"capture": SLOW, "filter": NAMES}}
    messages = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": asked},
    )
    lines = "".join(f"{json.dumps({'jsonrpc': '2.0', **each})}\n" for each in messages)
    said, calls = traced(tool("strace"), tmp_path, "mcp", CAPTURES, said=lines, until='"id":2')
    assert "unknown host 'secretdata'" in said
    assert sent(calls) == []


def test_a_thread_without_sockets() -> None:
    """The rest of the process keeps them."""
    with pytest.raises(PermissionError):
        run_offline(socket.socket, instead=never)
    with pytest.raises(socket.gaierror):
        run_offline(lambda: socket.getaddrinfo("secretdata", 80), instead=never)
    assert run_offline(lambda: socket.getaddrinfo("127.0.0.1", 80), instead=never)
    socket.socket(AF_UNIX).close()


@pytest.mark.parametrize("name", ["secretdata", "a.b", "dead.beef", "beef", "x-y", r"\host.invalid"])
def test_names_are_refused_where_sockets_cannot_be_denied(name: str) -> None:
    with pytest.raises(FilterError, match="names are not looked up"):
        libpcap._refuse_names(f"tcp and (host {name})")
    for plain in (
        "tcp port 443 and host 10.0.0.1",
        "ip6 net fe80::/10 or ether src aa:bb:cc:00:11:22",
        "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and tcp[0:4] = 0x47455420",
    ):
        libpcap._refuse_names(plain)
