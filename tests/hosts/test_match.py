"""Match sockets to connections: four-tuples from either side, other notations of addresses, and NAT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hosts.joined import MS_NS, SECOND_NS, Transfer, copied_run, socket_text, ss_text, write_pcap, write_stamp

from tcpwin.hosts import SnapshotFile, SocketSample, Translated
from tcpwin.hosts.match import Match, Matcher, four_tuple
from tcpwin.limits import Analysis, analyze

IPV6 = Transfer(client=("2001:db8::1", 40000), server=("2001:db8::2", 443))


def socket(local: str, local_port: int | None, peer: str, peer_port: int | None) -> SocketSample:
    return SocketSample(local_address=local, local_port=local_port, peer_address=peer, peer_port=peer_port)


def of(text: str) -> SnapshotFile:
    return SnapshotFile(text.encode())


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write_pcap(tmp_path / "c.pcap", Transfer())


@pytest.fixture
def matcher(capture: Path) -> Matcher:
    return Matcher(analyze(capture))


def test_either_sides_view(matcher: Matcher) -> None:
    assert matcher.find(socket("10.0.0.1", 40000, "10.0.0.2", 5201)) == [Match(0, "a")]
    assert matcher.find(socket("10.0.0.2", 5201, "10.0.0.1", 40000)) == [Match(0, "b")]
    assert matcher.epochs() == {}


@pytest.mark.parametrize(
    ("local", "peer"),
    [
        ("::ffff:10.0.0.2", "::ffff:10.0.0.1"),
        ("::ffff:a00:2", "10.0.0.1"),
        ("0:0:0:0:0:FFFF:0a00:0002", "::ffff:10.0.0.1"),
    ],
)
def test_a_dual_stack_socket_shows_ipv4_as_ipv6(matcher: Matcher, local: str, peer: str) -> None:
    assert matcher.find(socket(local, 5201, peer, 40000)) == [Match(0, "b")]


def test_ipv6_in_any_way_to_write_it(tmp_path: Path) -> None:
    matcher = Matcher(analyze(write_pcap(tmp_path / "c.pcap", IPV6)))
    for written in ("2001:db8::1", "2001:DB8:0:0::1", "2001:0db8:0000:0000:0000:0000:0000:0001"):
        assert matcher.find(socket(written, 40000, "2001:db8::2", 443)) == [Match(0, "a")]
    assert matcher.find(socket("2001:db8::1", 40000, "::ffff:10.0.0.2", 443)) == []


@pytest.mark.parametrize(
    "sample",
    [
        socket("*", 5201, "*", None),
        socket("0.0.0.0", 5201, "0.0.0.0", None),
        socket("10.0.0.2", 5201, "*", None),
        socket("", None, "", None),
        socket("999.0.0.1", 5201, "10.0.0.1", 40000),
        socket("10.0.0.2", None, "10.0.0.1", 40000),
        socket("10.0.0.2", 5201, "fe80::1%eth0%eth1", 40000),
    ],
)
def test_an_unconnected_socket_matches_nothing(matcher: Matcher, sample: SocketSample) -> None:
    assert matcher.find(sample) == []
    assert matcher.find_translated(sample) is None
    assert four_tuple(socket("*", 5201, "*", None)) is None


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        # Behind a translator the client's address differs from that in the server's capture.
        (
            socket("192.168.1.7", 40000, "10.0.0.2", 5201),
            Translated("192.168.1.7:40000", "10.0.0.2:5201", 0, "local_address"),
        ),
        # A load balancer's address replaces the server's.
        (
            socket("10.0.0.1", 40000, "172.16.0.9", 5201),
            Translated("10.0.0.1:40000", "172.16.0.9:5201", 0, "peer_address"),
        ),
        (
            socket("172.16.0.9", 5201, "10.0.0.1", 40000),
            Translated("172.16.0.9:5201", "10.0.0.1:40000", 0, "local_address"),
        ),
        (
            socket("10.0.0.2", 5201, "192.168.1.7", 40000),
            Translated("10.0.0.2:5201", "192.168.1.7:40000", 0, "peer_address"),
        ),
        (socket("192.168.1.7", 40000, "172.16.0.9", 5201), None),
        (socket("192.168.1.7", 40001, "10.0.0.2", 5201), None),
        (socket("10.0.0.1", 40000, "10.0.0.2", 5202), None),
    ],
)
def test_a_translated_address_is_named_but_never_matched(
    matcher: Matcher, sample: SocketSample, expected: Translated | None
) -> None:
    assert matcher.find(sample) == []
    assert matcher.find_translated(sample) == expected


def test_a_run_behind_a_translator_is_reported_not_joined() -> None:
    run = copied_run("slow-reader")
    text = ss_text(run, "rcv").replace("10.9.2.2:", "192.168.77.5:")
    analysis = analyze(run.capture, snapshots=[("inside", of(text))])
    [host] = analysis.hosts
    assert (host.matched, host.sides, host.clock, host.found) == (0, set(), None, {})
    port = run.receiver_port
    # One four-tuple, whatever the number of its samples.
    assert host.translated == [Translated(f"192.168.77.5:{port}", "10.9.1.1:5201", 0, "local_address")]
    assert analysis.connections[0].snapshots == ()
    assert analysis.connections[0].scale_claims == ()


def through_napt(text: str) -> str:
    """Return the client's `ss` text with address and port before translation."""
    return text.replace("10.0.0.1:40000", "192.168.77.5:51515")


def test_a_run_behind_a_translator_of_ports_is_reported_not_joined(capture: Path) -> None:
    transfer = Transfer()
    times = transfer.sample_times()
    client, server = (
        "".join(each([time_ns]) for time_ns in times) for each in (transfer.client_ss, transfer.server_ss)
    )
    ends = ("192.168.77.5:51515", "10.0.0.2:5201")
    [host] = analyze(capture, snapshots=[("inside", of(through_napt(client)))]).hosts
    assert (host.matched, host.translated) == (0, [Translated(*ends, 0, "local_end")])
    # The server saw the inner addresses, the capture the outer ones.
    [host] = analyze(capture, snapshots=[("server", of(through_napt(server)))]).hosts
    assert (host.matched, host.translated) == (0, [Translated(*reversed(ends), 0, "peer_end")])
    # The connection belongs to the server's socket; the client's remains unknown.
    known, inside = analyze(capture, snapshots=[("a", of(server)), ("inside", of(through_napt(client)))]).hosts
    assert (known.translated, inside.translated) == ([], [Translated(*ends, 0, "local_end")])


def test_sockets_of_a_known_host_and_several_alike_are_not_called_translated(capture: Path) -> None:
    transfer = Transfer()
    times = transfer.sample_times()
    other = socket_text(("192.168.77.5", 51515), ("10.0.0.2", 5201), "mss:1000")
    # The client has the connection's socket, so another one to the same server is unrelated.
    client = "".join(transfer.client_ss([time_ns]) + other for time_ns in times)
    [host] = analyze(capture, snapshots=[of(client)]).hosts
    assert (host.matched, host.translated) == (len(times), [])
    # If two connections fit, neither is chosen.
    both = other + socket_text(("192.168.77.5", 51516), ("10.0.0.2", 5201), "mss:1000")
    [host] = analyze(capture, snapshots=[of(both + both)]).hosts
    assert (host.sockets, host.matched, host.translated) == (4, 0, [])


def test_an_end_shared_by_two_connections_matches_neither(tmp_path: Path) -> None:
    second = replace(Transfer(), client=("10.0.0.1", 40007))
    matcher = Matcher(analyze(write_pcap(tmp_path / "c.pcap", Transfer(), second)))
    assert matcher.find_other_end(socket("192.168.77.5", 51515, "10.0.0.2", 5201)) is None
    found = matcher.find_other_end(socket("10.0.0.1", 40007, "172.16.0.9", 99))
    assert (found[0].side, found[1].differs) == ("a", "peer_end")


def test_many_translated_sockets_are_kept_up_to_a_bound(capture: Path) -> None:
    lines = [socket_text((f"10.77.{n // 250}.{n % 250}", 40000), ("10.0.0.2", 5201), "mss:1000") for n in range(2000)]
    [host] = analyze(capture, snapshots=[of("".join(lines))]).hosts
    assert (host.sockets, host.matched) == (2000, 0)
    assert [each.local for each in host.translated] == [f"10.77.0.{n}:40000" for n in range(20)]


def test_listening_sockets_and_others_are_counted_only(capture: Path) -> None:
    transfer = Transfer()
    others = (
        "LISTEN 0 128 0.0.0.0:5201 0.0.0.0:*\n\t cubic cwnd:10\n"
        "LISTEN 0 128 *:22 *:*\n\t cubic cwnd:10\n"
        "ESTAB 0 0 10.0.0.2:22 10.0.0.9:50000\n\t cubic mss:1448 cwnd:10 bytes_acked:77\n"
    )
    text = "".join(transfer.server_ss([time_ns]) + others for time_ns in transfer.sample_times())
    analysis = analyze(capture, snapshots=[of(text)])
    [host] = analysis.hosts
    assert (host.sockets, host.matched, host.sides, host.translated) == (80, 20, {"b"}, [])
    assert [each.sample.state for each in analysis.connections[0].snapshots] == ["ESTAB"] * 20


def test_both_ends_on_one_host(capture: Path) -> None:
    """Over loopback, one file contains both sockets."""
    transfer = Transfer()
    text = "".join(
        transfer.server_ss([time_ns]) + transfer.client_ss([time_ns]).split("\n", 1)[1]
        for time_ns in transfer.sample_times()
    )
    analysis = analyze(capture, snapshots=[of(text)])
    [host] = analysis.hosts
    assert (host.label, host.sides, host.matched) == ("text", {"a", "b"}, 40)
    found = analysis.connections[0].snapshots
    assert [each.side for each in found].count("a") == [each.side for each in found].count("b") == 20
    assert [each.disagreements for each in found] == [()] * 40
    for each in found:
        at_server = each.side == "b"
        assert each.sample.local_port == (5201 if at_server else 40000)
        assert each.time_ns is not None
        assert each.sample.bytes_acked == (transfer.acked_bytes(each.time_ns) if at_server else 1)


def reused(tmp_path: Path) -> tuple[Transfer, Transfer, Path]:
    """A client that reuses its port ten seconds later."""
    first = Transfer()
    second = replace(first, start_ns=first.start_ns + 10 * SECOND_NS, isn=(700_000_000, 900_000_000), segments=60)
    return first, second, write_pcap(tmp_path / "c.pcap", first, second)


def test_a_reused_port_is_matched_by_time(tmp_path: Path) -> None:
    first, second, capture = reused(tmp_path)
    text = first.server_ss() + second.server_ss()
    analysis = analyze(capture, snapshots=[of(text)])
    assert len(analysis) == 2
    assert Matcher(analysis).find(socket("10.0.0.2", 5201, "10.0.0.1", 40000)) == [Match(0, "b"), Match(1, "b")]
    assert Matcher(analysis).epochs() == {0: (0, 1)}
    assert times_of(analysis) == [first.sample_times(), second.sample_times()]


def test_a_port_that_is_used_again_with_a_clock_that_is_given(tmp_path: Path) -> None:
    first, second, capture = reused(tmp_path)
    ahead_ns = 3600 * SECOND_NS
    text = first.server_ss(offset_ns=ahead_ns) + second.server_ss(offset_ns=ahead_ns)
    analysis = analyze(capture, snapshots=[of(text)], clock_offset_ns=-ahead_ns)
    assert times_of(analysis) == [first.sample_times(), second.sample_times()]
    found = [each for connection in analysis.connections for each in connection.snapshots]
    assert [each.disagreements for each in found] == [()] * 32
    assert all(each.acked_bytes is not None for each in found)


def test_samples_without_time_of_a_port_that_is_used_again_belong_to_neither(tmp_path: Path) -> None:
    first, second, capture = reused(tmp_path)
    text = "".join(
        line for line in (first.server_ss() + second.server_ss()).splitlines(keepends=True) if line[0] != "#"
    )
    analysis = analyze(capture, snapshots=[of(text)])
    assert analysis.hosts[0].matched == 32
    assert times_of(analysis) == [[], []]


def times_of(analysis: Analysis) -> list[list[int | None]]:
    return [[each.time_ns for each in connection.snapshots] for connection in analysis.connections]


def test_a_file_of_another_host_matches_nothing(capture: Path) -> None:
    text = "".join(
        write_stamp(1_700_000_000 * SECOND_NS + place * 200 * MS_NS)
        + socket_text(("172.30.1.4", 443), ("172.30.9.9", 51000 + place), "mss:1448 cwnd:10 bytes_acked:5000")
        for place in range(30)
    )
    analysis = analyze(capture, snapshots=[of(text)])
    [host] = analysis.hosts
    assert (host.sockets, host.matched, host.sides, host.clock, host.translated) == (30, 0, set(), None, [])
    assert analysis.connections[0].snapshots == ()
