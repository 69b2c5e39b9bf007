"""Loopback connections: many idle ones, or one to use."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hosts.collect.connections import Pairs
from live import HANG_S, make_listener


@pytest.fixture(scope="module")
def pairs() -> Iterator[Pairs]:
    with ExitStack() as stack:
        yield Pairs(stack)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Make one connection whose calls time out."""
    with (
        make_listener() as listener,
        socket.create_connection(listener.getsockname(), timeout=HANG_S) as client,
        listener.accept()[0] as server,
    ):
        server.settimeout(HANG_S)
        yield client, server
