"""Shell completion of partial words."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from cases import all_cases
from cli.command import MANY_SHORT, tcpwin


def offered(words: str) -> list[str]:
    """Return bash's completions for the last word of a line."""
    count = len(words.split(" ")) - 1
    env = {"_TCPWIN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    with patch.dict(os.environ, env):
        done = tcpwin()
    assert done.stderr == b""
    return [line.partition(",")[2] for line in done.stdout.decode().splitlines() if line]


@all_cases(
    ("words", "word"),
    [
        ("tcpwin explain TW20", "TW201"),
        ("tcpwin explain zero-window-s", "zero-window-stall"),
        ("tcpwin check --select tw30", "TW301"),
        ("tcpwin check --ignore TW201,TW30", "TW201,TW301"),
        ("tcpwin check --threshold TW201.", "TW201.stall_ns="),
        ("tcpwin watch --select TW20", "TW201"),
        ("tcpwin plot --figure win", "window"),
        ("tcpwin plot --figure time", "timeline"),
        ("tcpwin reference cloud", "cloudflare-default-kernel"),
        ("tcpwin reference articles/w", "articles/windows"),
        ("tcpwin slice --finding TW20", "TW201"),
        ("tcpwin whatif --lift path", "path_loss"),
        ("tcpwin lab show buffer-6", "buffer-64k"),
        ("tcpwin ss --sort rtt", "rtt_ns"),
    ],
)
def test_names_are_offered(words: str, word: str) -> None:
    found = offered(words)
    assert word in found
    begun = words.rpartition(" ")[2].lower()
    assert all(each.lower().startswith(begun) for each in found)


def test_connections_of_the_capture_are_offered() -> None:
    found = offered(f"tcpwin packets {MANY_SHORT} --connection 6")
    assert found == ["6", *(str(number) for number in range(60, 65))]


@pytest.mark.parametrize("words", ["tcpwin whatif cap", "tcpwin analyze a.pcap --with ss", "tcpwin check cap"])
def test_files_are_left_to_the_shell(words: str) -> None:
    assert offered(words) == [words.rpartition(" ")[2]]


def test_nothing_is_offered_if_the_value_is_unknown(tmp_path: Path) -> None:
    assert offered(f"tcpwin packets {tmp_path / 'absent.pcap'} --connection 0") == []
    (tmp_path / "text").write_text("no capture")
    assert offered(f"tcpwin packets {tmp_path / 'text'} --connection 0") == []
    assert offered("tcpwin explain nonsense") == []
