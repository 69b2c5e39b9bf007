"""Counters, memory, settings and the kernel of this host."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.collect.host import Host, read_kernel, read_settings


def test_counters_are_nstats_and_only_what_changed(tmp_path: Path) -> None:
    (tmp_path / "netstat").write_text("TcpExt: PruneCalled RcvPruned\nTcpExt: 1 2\nIpExt: InOctets\nIpExt: 3\n")
    (tmp_path / "snmp").write_text("Tcp: MaxConn RetransSegs\nTcp: -1 7\n")
    (tmp_path / "sockstat").write_text("sockets: used 9\nTCP: inuse 1 mem 33\n")
    host = Host(proc_net=tmp_path)
    first = {"TcpExtPruneCalled": 1, "TcpExtRcvPruned": 2, "IpExtInOctets": 3, "TcpMaxConn": -1, "TcpRetransSegs": 7}
    assert host.counters() == first
    assert host.counters() == {}
    assert host.memory() == {"sockets": {"used": 9}, "TCP": {"inuse": 1, "mem": 33}}
    assert host.memory() == {}
    (tmp_path / "netstat").write_text("TcpExt: PruneCalled RcvPruned\nTcpExt: 1 5\nIpExt: InOctets\nIpExt: 3\n")
    (tmp_path / "sockstat").write_text("sockets: used 9\nTCP: inuse 2 mem 33\n")
    assert host.counters() == {"TcpExtRcvPruned": 5}
    assert host.memory() == {"sockets": {"used": 9}, "TCP": {"inuse": 2, "mem": 33}}
    assert host.counters(everything=True) == {**first, "TcpExtRcvPruned": 5}
    assert host.memory(everything=True) == {"sockets": {"used": 9}, "TCP": {"inuse": 2, "mem": 33}}
    host.close()


def test_without_files_there_are_no_counters(tmp_path: Path) -> None:
    host = Host(proc_net=tmp_path)
    assert (host.counters(), host.memory()) == ({}, {})


def test_this_hosts_counters_are_those_of_the_other_reader() -> None:
    host = Host()
    before = host.counters(everything=True)
    text = b"".join(Path("/proc/net", name).read_bytes() for name in ("netstat", "snmp"))
    (other,) = SnapshotFile(text, format="proc_net")
    after = host.counters(everything=True)
    host.close()
    # The kernel adds a name with the first ICMP message of its type (net/ipv4/proc.c, icmpmsg_put).
    assert before.keys() <= other.values.keys() <= after.keys()
    assert len(before) > 100
    assert before["TcpRtoMin"] == other.values["TcpRtoMin"]
    for name in ("TcpExtTCPHPHits", "TcpInSegs", "TcpOutSegs", "IpExtInOctets"):
        assert before[name] <= other.values[name] <= after[name]


def test_settings_have_single_spaces_and_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "net" / "ipv4"
    folder.mkdir(parents=True)
    for name, text in (
        ("tcp_rmem", "4096\t131072\t6291456\n"),
        ("tcp_fastopen_key", "00-11-22-33\n"),
        ("tcp_sack", "1\n"),
        ("icmp_ratelimit", "1000\n"),
    ):
        (folder / name).write_text(text)
    assert read_settings(proc_sys=tmp_path) == {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_sack": "1"}


def test_this_host_has_settings_and_a_kernel() -> None:
    settings = read_settings()
    assert settings["net.ipv4.tcp_rmem"] == " ".join(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split())
    # In a network namespace, kernels before 6.10 have no net.core.rmem_max.
    expected = {"net.core.rmem_max", "net.core.somaxconn", "net.ipv4.tcp_slow_start_after_idle"}
    there = {name for name in expected if Path("/proc/sys", name.replace(".", "/")).is_file()}
    assert there <= settings.keys()
    assert "net.ipv4.tcp_slow_start_after_idle" in there
    assert not any("fastopen_key" in name for name in settings)
    kernel = read_kernel()
    assert kernel["release"] == subprocess.check_output(["uname", "-r"], text=True).strip()
    assert kernel["page_size_bytes"] == int(subprocess.check_output(["getconf", "PAGESIZE"]))
