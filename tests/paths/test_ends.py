"""Settings of both ends: assigned by socket, address or name, and never merged."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpwin
from tcpwin.paths import ends_of

CAPTURE = Path(__file__).parents[2] / "captures" / "lab" / "slow-reader.pcap.gz"
SMALL, LARGE = "4096 131072 6291456", "4096 131072 33554432"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, value in (("one", SMALL), ("two", LARGE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sysctl.txt").write_text(
            f"net.ipv4.tcp_rmem = {value}\nnet.ipv4.tcp_wmem = 4096 16384 4194304\n"
        )
    return tmp_path / "one" / "sysctl.txt", tmp_path / "two" / "sysctl.txt"


def connection(*snapshots: object) -> tcpwin.Connection:
    return tcpwin.analyze(CAPTURE, snapshots=list(snapshots)).connections[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second"),
    [("client", "server"), ("receiver", "sender"), ("rcv-host", "snd-host"), ("10.9.2.2", "10.9.1.1"), ("a", "b")],
)
def test_a_hosts_name_or_address_says_its_end(files: tuple[Path, Path], first: str, second: str) -> None:
    """The server, 10.9.1.1, sends."""
    sender, receiver, notes = ends_of(connection((first, files[0]), (second, files[1])), "b_to_a")
    assert receiver.settings["net.ipv4.tcp_rmem"] == SMALL
    assert sender.settings["net.ipv4.tcp_rmem"] == LARGE
    assert (sender.name, receiver.name) == ("server", "client")
    assert not notes


def test_names_that_say_no_end_are_used_at_none(files: tuple[Path, Path]) -> None:
    sender, receiver, notes = ends_of(connection(("oslo", files[0]), ("lima", files[1])), "b_to_a")
    assert not sender.settings
    assert not receiver.settings
    [note] = notes
    assert "lima and oslo" in note


def test_two_files_that_do_not_say_whose_they_are_overwrite_nothing(files: tuple[Path, Path]) -> None:
    chosen = connection(*files)
    [host] = chosen.analysis.hosts
    assert host.settings is not None
    assert dict(host.settings.values) == {"net.ipv4.tcp_wmem": "4096 16384 4194304"}
    assert set(host.disputed) == {"net.ipv4.tcp_rmem"}
    assert any("different values of net.ipv4.tcp_rmem" in note for note in chosen.analysis.notes)


def test_one_file_is_of_both_ends(files: tuple[Path, Path]) -> None:
    for end in ends_of(connection(files[0]), "b_to_a")[:2]:
        assert end.settings["net.ipv4.tcp_rmem"] == SMALL
        assert "both ends" in end.how


def test_a_socket_says_its_end() -> None:
    chosen = tcpwin.analyze(Path(__file__).with_name("send-buffer-left.zip"), capture="sender.pcap.gz").connections[0]
    sender, receiver, _ = ends_of(chosen, "b_to_a")
    assert sender.sizes("tcp_wmem") == (4096, 16384, 60000)
    assert receiver.sizes("tcp_wmem") == (4096, 16384, 4194304)
    assert "socket" in sender.how
    assert sender.kernel == (6, 1)
