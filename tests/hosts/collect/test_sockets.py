"""Changes from one dump of the sockets to the next."""

from __future__ import annotations

import json
import socket
import struct

import pytest
from hosts.collect.connections import RUNNING, receive, wait_for_rest
from live import only, sockets_of, until

from tcpwin.errors import SnapshotError
from tcpwin.hosts.collect import Filter
from tcpwin.hosts.collect.sockets import SocketDump
from tcpwin.hosts.collect.tcp_info import zero_fields


def test_changes_reproduce_the_current_state(pair: tuple[socket.socket, socket.socket]) -> None:
    client, server = pair
    wanted = Filter(only(client))
    wait_for_rest(wanted)
    with SocketDump(wanted=wanted.matches) as dump:
        first = {each["cookie"]: each for each in dump.look().whole}
        assert len(first) == 2
        quiet = dump.look()
        assert (quiet.count, quiet.whole, quiet.changes, quiet.gone) == (2, [], [], [])
        client.sendall(b"z" * 5000)
        receive(server, 5000)
        wait_for_rest(wanted)
        busy = dump.look()
        assert (busy.count, busy.whole, busy.gone) == (2, [], [])
        zeros = zero_fields(1024)
        assert len(busy.changes) == 2
        for change in map(json.loads, busy.changes):
            first[change["cookie"]] = {**zeros, **first[change["cookie"]], **change}
        now = {each["cookie"]: {**zeros, **each} for each in dump.look(everything=True).whole}
        for cookie, expected in now.items():
            said = {name: value for name, value in first[cookie].items() if value is not None}
            assert {name: value for name, value in said.items() if name not in RUNNING} == {
                name: value for name, value in expected.items() if name not in RUNNING
            }
        assert sorted(each["bytes_received"] for each in now.values()) == [0, 5000]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        server.close()
        until(lambda: sockets_of(wanted) == 0)
        over = dump.look()
        assert (over.count, over.whole, over.changes) == (0, [], [])
        assert sorted(over.gone) == sorted(now)


def test_no_netlink_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(SnapshotError, match=r"^snap: .* netlink socket \(Protocol not supported\)$"):
        SocketDump()


def test_systems_other_than_linux_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SnapshotError, match=r"^snap: sockets can be sampled on Linux only$"):
        SocketDump()
