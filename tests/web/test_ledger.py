"""The ledger: nobody takes so much of a resource that the owner, or what was accepted, is left without."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from live import HANG_S, until
from web.crafted import API, settle
from web.running import MakeServer
from web.test_tokens import OWNER, bearer

from tcpwin_web import Settings
from tcpwin_web.crowding import Crowd
from tcpwin_web.jobs import ProcessExecutor
from tcpwin_web.ledger import Account, Ledger
from tcpwin_web.slots import BusyError, Caller, set_caller

FEW_FILES = 256
STRANGERS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
IDLE_EACH = 500
OWNER_REQUESTS, SLOW_S = 40, 1.0


@pytest.fixture
def many_sockets() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def dial(stack: ExitStack, address: str, source: str, sent: bytes = b"") -> None:
    """Connect from an address of this machine, and neither wait nor read."""
    place = urlsplit(address)
    opened = stack.enter_context(socket.socket())
    opened.bind((source, 0))
    opened.setblocking(False)
    with suppress(BlockingIOError):
        opened.connect((place.hostname, place.port))
    if sent:
        opened.setblocking(True)
        with suppress(OSError):
            opened.sendall(sent)


@pytest.mark.usefixtures("many_sockets")
def test_strangers_exhaust_nothing(make_server: MakeServer, on_database: list[str], capture: bytes) -> None:
    """At 256 descriptors: 1,500 idle connections, 256 streams of one token, uploads; the owner hardly notices."""
    _, address = make_server(*on_database, files=FEW_FILES, TCPWIN_TOKEN=OWNER)
    with ExitStack() as stack:
        owner = stack.enter_context(httpx2.Client(base_url=address, timeout=HANG_S, headers=bearer(OWNER)))
        reader, uploader = (
            owner.post(f"{API}/tokens", json={"name": scope, "scope": scope}).json()["secret"]
            for scope in ("read", "upload")
        )
        waiting = owner.post(f"{API}/captures", json={"name": "open"}).json()["id"]

        def upload(number: int) -> str:
            answer = httpx2.post(
                f"{address}{API}/uploads?name={number}.pcap",
                content=capture,
                headers=bearer(uploader),
                timeout=HANG_S,
            )
            assert answer.status_code == 202, answer.text
            return str(answer.json()["id"])

        accepted = [upload(0)]
        for source in STRANGERS:
            for _ in range(IDLE_EACH):
                dial(stack, address, source)
        stream = f"GET {API}/captures/{waiting}/progress HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {reader}"
        for _ in range(256):
            dial(stack, address, "127.0.0.5", f"{stream}\r\n\r\n".encode())
        accepted.append(upload(1))
        seconds = []
        for number in range(OWNER_REQUESTS):
            if number % 10 == 0:
                for _ in range(100):
                    dial(stack, address, STRANGERS[number // 10 % 3])
            began = time.monotonic()
            # As a browser does that was closed before.
            answer = httpx2.get(f"{address}{API}/captures", headers=bearer(OWNER), timeout=HANG_S)
            seconds.append(time.monotonic() - began)
            assert answer.status_code == 200
        assert sorted(seconds)[OWNER_REQUESTS * 95 // 100] < SLOW_S, seconds
        with owner.stream("GET", f"{API}/captures/{waiting}/progress") as own:
            assert own.status_code == 200
        accepted.append(upload(2))
        assert {settle(owner, id)["status"] for id in accepted} == {"done"}


def test_the_totals_fit_into_the_process(tmp_path: Path) -> None:
    for files in (128, 256, 1024, 65_536):
        ledger = Ledger.of(Settings(data=tmp_path, workers=2), files)
        assert ledger.connections + 4 * ledger.uploads + 3 * ledger.sessions + ledger.threads < files
        assert 0 < 3 * ledger.of_address <= 3 * ledger.connections
    assert Ledger.of(Settings(data=tmp_path), 65_536).uploads == 64


def test_a_share_for_each_caller_and_a_reserve_for_the_owner() -> None:
    account = Account("things", 16)
    with ExitStack() as stack:

        def hold(caller: Caller) -> None:
            set_caller(caller)
            stack.enter_context(account.hold())

        def refused(caller: Caller) -> bool:
            with suppress(BusyError):
                hold(caller)
                return False
            return True

        one = Caller("token a 192.0.2.1", credential="token a")
        for _ in range(4):
            hold(one)
        assert refused(one)
        for _ in range(4):
            hold(Caller("token a 192.0.2.2", credential="token a"))
        # The same token from a third address.
        assert refused(Caller("token a 192.0.2.3", credential="token a"))
        for number in range(6):
            hold(Caller(f"token b{number} 192.0.2.4", credential=f"token b{number}"))
        assert refused(Caller("token c 192.0.2.5", credential="token c"))
        for _ in range(2):
            hold(Caller("owner", is_owner=True))
        assert refused(Caller("owner", is_owner=True))
    assert account.taken == 0
    set_caller(Caller("after"))


class Idle:
    def __init__(self, rank: int = 0) -> None:
        self.rank, self.is_dropped = rank, False

    def drop(self) -> None:
        self.is_dropped = True


def test_the_most_crowded_address_makes_room() -> None:
    crowd = Crowd(Ledger(256, 10, 6, 4, 4, 4))
    owner, busy = Idle(3), Idle(2)
    crowd.add(owner, "192.0.2.1")
    crowd.add(busy, "192.0.2.2")
    crowded = [Idle() for _ in range(7)]
    for each in crowded:
        crowd.add(each, "2001:db8::/64")
    # Its share is six.
    assert [each.is_dropped for each in crowded] == [True, *[False] * 6]
    for number in range(20):
        crowd.add(Idle(), f"198.51.100.{number}")
    assert all(each.is_dropped for each in crowded)
    assert not owner.is_dropped
    assert not busy.is_dropped
    # Without idle ones, somebody's only request is answered, and the new connection is closed.
    full, late = Crowd(Ledger(256, 2, 2, 4, 4, 4)), Idle()
    full.add(Idle(1), "192.0.2.1")
    full.add(Idle(1), "192.0.2.2")
    full.add(late, "192.0.2.3")
    assert late.is_dropped


def test_a_lack_of_descriptors_is_waited_out() -> None:
    executor = ProcessExecutor(1, memory_bytes=1 << 30, seconds=60)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            waiting, cancelled = executor.submit(int), executor.submit(int)
            time.sleep(0.3)
            assert not waiting.done()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert cancelled.cancel()
        assert waiting.result(HANG_S) == 0
    finally:
        executor.shutdown(cancel_futures=True)
    until(cancelled.done)
