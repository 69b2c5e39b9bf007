"""Conclusions from single socket samples, for `ss` output as people paste it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tcpwin.cli.program import cli

HEAD = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
ROW = "{state} {recv} {send} 10.0.0.1:873 10.0.0.2:40000 {timer}\n\t {info}\n"
USUAL = "cubic wscale:7,7 rto:204 rtt:20/1 mss:1448 pmtu:1500 cwnd:10 bytes_sent:1000000 bytes_acked:1000000"


def text_of(info: str = USUAL, *, state: str = "ESTAB", recv: int = 0, send: int = 0, timer: str = "") -> str:
    return HEAD + ROW.format(state=state, recv=recv, send=send, timer=timer, info=info)


def conclusion(folder: Path, text: str) -> str | None:
    path = folder / "ss.txt"
    path.write_text(text, encoding="utf8")
    result = CliRunner().invoke(cli, ["ss", "--format", "json", str(path)])
    assert result.exit_code == 0, result.output
    import json

    [sample] = json.loads(result.output)["samples"]
    found: str | None = sample.get("conclusion")
    return found


CASES = {
    "persist": (
        text_of(
            USUAL + " busy:100000ms rwnd_limited:95000ms(95.0%) backoff:9",
            send=154_240,
            timer="timer:(persist,41sec,0)",
        ),
        ("95 %", "backoff 9", "154 kB", "does not read"),
    ),
    "known defect": (
        text_of(USUAL + " snd_wnd:4294967295 backoff:15", send=154_240, timer="timer:(persist,41sec,0)"),
        ("although", "known defect"),
    ),
    "silent": (
        text_of(USUAL + " unacked:4 retrans:1/7 backoff:5 lastack:31000", send=5792, timer="timer:(on,13sec,5)"),
        ("nothing acknowledged for 31 s", "backoff 5", "4 segments"),
    ),
    "unread": (
        text_of("skmem:(r6000000,rb6291456,t0,tb2626560,f0,w0,o0,bl0,d12) " + USUAL, recv=4_000_000),
        ("4 MB unread", "95 % full", "12 packets dropped"),
    ),
    "window": (text_of(USUAL + " busy:1000ms rwnd_limited:800ms(80.0%) snd_wnd:65535"), ("80 %", "65.5 kB now")),
    "send buffer": (text_of(USUAL + " busy:1000ms sndbuf_limited:700ms(70.0%)"), ("send buffer", "70 %", "tcp_wmem")),
    "loss": (text_of(USUAL + " bytes_retrans:50000"), ("5 %", "50 kB of 1 MB")),
    "queue": (text_of(USUAL.replace("rtt:20/1", "rtt:500/10") + " minrtt:20"), ("500 ms", "480 ms")),
    "close": (text_of(USUAL + " lastrcv:90000", state="CLOSE-WAIT"), ("peer closed",)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_socket_says_what_it_waits_for(tmp_path: Path, name: str) -> None:
    text, words = CASES[name]
    found = conclusion(tmp_path, text) or ""
    assert not [each for each in words if each not in found], found


@pytest.mark.parametrize(
    "text",
    [
        text_of(),
        text_of(USUAL + " busy:1000ms rwnd_limited:400ms(40.0%)"),
        text_of(USUAL + " unacked:2 backoff:1", timer="timer:(on,200ms,1)"),
        text_of(USUAL + " bytes_retrans:500"),
    ],
)
def test_an_ordinary_socket_says_nothing(tmp_path: Path, text: str) -> None:
    assert conclusion(tmp_path, text) is None


def test_the_table_ends_with_them(tmp_path: Path) -> None:
    path = tmp_path / "ss.txt"
    path.write_text(CASES["persist"][0], encoding="utf8")
    lines = CliRunner().invoke(cli, ["ss", str(path)]).output.splitlines()
    [line] = [each for each in lines if each.startswith("10.0.0.1:873 → 10.0.0.2:40000: ")]
    assert "persist timer at backoff 9" in line
