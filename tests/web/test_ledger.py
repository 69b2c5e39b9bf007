"""The ledger: nobody takes so much of a resource that the owner, or what was accepted, is left without."""

import asyncio
import resource
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from live import HANG_S, until
from reference import NO_RIGHT
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from web.conftest import MakeClient
from web.crafted import API, analysed, many_connections, settle
from web.postgres import ON_BOTH
from web.running import Host, MakeServer
from web.test_tokens import OWNER, bearer, make

from tcpwin_web import Settings, ledger, twins
from tcpwin_web.captures import NotFoundError
from tcpwin_web.crowding import Crowd
from tcpwin_web.jobs import ProcessExecutor
from tcpwin_web.ledger import MOST_UNREAD_BYTES, Account, Disk, Ledger
from tcpwin_web.security.access import Access
from tcpwin_web.service import OTHERS_TURNS
from tcpwin_web.slots import BusyError, Caller, set_caller
from tcpwin_web.storage import Database
from tcpwin_web.watching import Watch

FEW_FILES = 256
IDLE = 1500
OWNER_REQUESTS, SLOW_S = 40, 1.0
FLOOD = 8000
LOCAL_PREFIX = "fd74:6370::/32"
SOL_IPV6, IPV6_FREEBIND = 41, 78
"""Of linux/in6.h; Python has no name for them."""


@pytest.fixture
def many_sockets() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def ipv6() -> Iterator[None]:
    """Let every address of a prefix be this machine's."""
    route = ("ip", "-6", "route", "{}", "local", LOCAL_PREFIX, "dev", "lo")
    ip = shutil.which("ip")
    if ip is None or subprocess.run([word.format("replace") for word in route], check=False).returncode:
        pytest.skip(f"{NO_RIGHT} add a route")
    yield
    subprocess.run([word.format("del") for word in route], check=False)


def dial(stack: ExitStack, address: str, source: str, sent: bytes = b"") -> None:
    """Connect from an address of this machine, and neither wait nor read."""
    place = urlsplit(address)
    opened = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET))
    if ":" in source:
        opened.setsockopt(SOL_IPV6, IPV6_FREEBIND, 1)
    opened.bind((source, 0))
    opened.setblocking(False)
    with suppress(BlockingIOError):
        opened.connect((place.hostname, place.port))
    if sent:
        opened.setblocking(True)
        with suppress(OSError):
            opened.sendall(sent)


def from_three(number: int) -> str:
    return f"127.0.0.{2 + number % 3}"


def from_networks(number: int) -> str:
    """One half come from one network, with an address each; the others from a network each."""
    return f"fd74:6370::{number:x}" if number % 2 else f"fd74:6370:{number:x}::1"


@pytest.mark.usefixtures("many_sockets")
def test_strangers_exhaust_nothing(make_server: MakeServer, on_database: list[str], capture: bytes) -> None:
    """At 256 descriptors: 1,500 idle connections, 256 streams and 600 unread answers of one token, uploads."""
    attacked(make_server, on_database, capture, from_three, FEW_FILES)


@pytest.mark.nightly
@pytest.mark.usefixtures("many_sockets", "ipv6")
@pytest.mark.parametrize("files", [0, FEW_FILES])
@pytest.mark.parametrize("source", [from_three, from_networks])
def test_the_owner_is_served_at_once(
    make_server: MakeServer, on_database: list[str], capture: bytes, source: Callable[[int], str], files: int
) -> None:
    """Measured, on a machine without other load; also with the system's limit of descriptors."""
    where = ("--host", "::1") if ":" in source(0) else ()
    p95_s = attacked(make_server, [*on_database, *where], capture, source, files)
    print(f"{source.__name__}, {files or 'default'} descriptors: p95 {p95_s * 1000:.0f} ms")
    assert p95_s < SLOW_S


def attacked(
    make_server: MakeServer, arguments: list[str], capture: bytes, source: Callable[[int], str], files: int
) -> float:
    """Attack a service; return the 95th percentile of the owner's requests, in seconds."""
    _, address = make_server(*arguments, files=files, TCPWIN_TOKEN=OWNER)
    host = urlsplit(address).netloc
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
        many = analysed(owner, many_connections(1000))
        for number in range(IDLE):
            dial(stack, address, source(number))
        ends = f"HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {reader}\r\n\r\n"
        large = f"GET {API}/captures/{many}/connections?limit=1000 {ends}".encode()
        for _ in range(256):
            dial(stack, address, source(1), f"GET {API}/captures/{waiting}/progress {ends}".encode())
        accepted.append(upload(1))
        seconds = []
        for number in range(OWNER_REQUESTS):
            if number % 10 == 0:
                for other in range(100):
                    dial(stack, address, source(IDLE + 100 * number + other))
                    dial(stack, address, source(other), large)
            began = time.monotonic()
            # As a browser does that was closed before.
            answer = httpx2.get(f"{address}{API}/captures", headers=bearer(OWNER), timeout=HANG_S)
            seconds.append(time.monotonic() - began)
            assert answer.status_code == 200
        with owner.stream("GET", f"{API}/captures/{waiting}/progress") as own:
            assert own.status_code == 200
        accepted.append(upload(2))
        assert {settle(owner, id)["status"] for id in accepted} == {"done"}
    return sorted(seconds)[OWNER_REQUESTS * 95 // 100]


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
    def __init__(self, rank: int = 0, credential: str | None = None) -> None:
        self.rank, self.credential, self.is_dropped = rank, credential, False

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
    # Of a token's many requests, from whatever addresses, the oldest makes room.
    rows, asked, late = Crowd(Ledger(256, 4, 4, 4, 4, 4)), [Idle(2, "token a") for _ in range(3)], Idle()
    for number, each in enumerate((*asked, Idle(2, "token b"), late)):
        rows.add(each, f"2001:db8:{number}::/64")
    assert [each.is_dropped for each in (*asked, late)] == [True, False, False, False]


def test_tokens_leave_half_of_the_connections_to_those_who_have_not_sent_a_request() -> None:
    crowd, fresh, late = Crowd(Ledger(256, 8, 8, 4, 4, 4)), [Idle(1) for _ in range(3)], Idle()
    held = [Idle(2, "token a") for _ in range(5)]
    for number, each in enumerate((*fresh, *held, late)):
        crowd.add(each, f"198.51.100.{number}")
    assert [each.is_dropped for each in held] == [True, False, False, False, False]
    assert not any(each.is_dropped for each in (*fresh, late))
    # The same where one address has its share.
    of_address, mine = Crowd(Ledger(256, 90, 4, 4, 4, 4)), Idle()
    busy = [Idle(2, "token a") for _ in range(4)]
    for each in (*busy, mine):
        of_address.add(each, "127.0.0.1")
    assert [each.is_dropped for each in (*busy, mine)] == [True, False, False, False, False]


def test_an_owners_next_connection_outlasts_those_of_strangers() -> None:
    crowd, before, idle, fresh = Crowd(Ledger(256, 8, 8, 4, 4, 4)), Idle(3), Idle(), Idle(1)
    for each in (before, idle, fresh):
        crowd.add(each, "192.0.2.1")
    crowd.remove(before, "192.0.2.1")
    strangers = [Idle() for _ in range(40)]
    for number, each in enumerate(strangers):
        crowd.add(each, f"198.51.100.{number}")
    assert (idle.is_dropped, fresh.is_dropped) == (False, False)
    assert sum(each.is_dropped for each in strangers) == 40 - 6


@pytest.mark.nightly
@pytest.mark.usefixtures("many_sockets")
def test_a_flood_of_new_connections_closes_none_of_the_owners(make_server: MakeServer) -> None:
    """At 256 descriptors, from a network each, with half a request each."""
    _, address = make_server(files=FEW_FILES, TCPWIN_TOKEN=OWNER)
    ends = threading.Event()

    def flood() -> None:
        for number in range(FLOOD):
            if ends.is_set():
                return
            with ExitStack() as stack, suppress(OSError):
                dial(stack, address, f"127.{1 + number // 250}.{1 + number % 250}.1", b"G")
                open_ones.append(stack.pop_all())

    open_ones: list[ExitStack] = []
    with ThreadPoolExecutor(1) as thread:
        flooding = thread.submit(flood)
        try:
            for _ in range(OWNER_REQUESTS):
                assert httpx2.get(f"{address}{API}/captures", headers=bearer(OWNER), timeout=HANG_S).status_code == 200
        finally:
            ends.set()
            flooding.result()
            for each in open_ones:
                each.close()
    assert len(open_ones) > FEW_FILES


@ON_BOTH
def test_a_caller_gets_a_share_of_the_databases_connections(database_url: str | None, tmp_path: Path) -> None:
    """Of eight: six, the owner one more than all others; who waits is served as soon as one is free."""
    database = Database(database_url or f"sqlite+aiosqlite:///{tmp_path / 'x.db'}", sessions=10)

    async def use() -> None:
        async with AsyncExitStack() as first, AsyncExitStack() as others:

            async def opens(stack: AsyncExitStack, caller: Caller) -> bool:
                set_caller(caller)
                opening = asyncio.create_task(stack.enter_async_context(database.begin()))
                await asyncio.wait({opening}, timeout=0.1)
                if not opening.done():
                    waiting.append(opening)
                    return False
                return bool(await (await opening).scalar(text("SELECT 1")))

            waiting: list[asyncio.Task[AsyncSession]] = []
            assert [await opens(first, Caller("a")) for _ in range(7)] == [True] * 6 + [False]
            assert [await opens(others, Caller("b")) for _ in range(2)] == [True, False]
            assert await opens(others, Caller("owner", is_owner=True))
            await first.aclose()
            for each in waiting:
                await asyncio.wait_for(each, HANG_S)
        await database.close()

    asyncio.run(use())


def test_one_query_at_a_time_serves_all_streams() -> None:
    queries = []

    class Stored:
        async def get_all(self, wanted: set[str]) -> dict[str, str]:
            queries.append(wanted)
            await asyncio.sleep(0.05)
            return {each: each for each in wanted if each != "deleted"}

    async def watch() -> None:
        seen = Watch(Stored())  # type: ignore[arg-type]
        first = asyncio.create_task(seen.look("0"))
        await asyncio.sleep(0.01)
        others = [asyncio.create_task(seen.look(str(number % 3))) for number in range(256)]
        others[0].cancel()
        with pytest.raises(NotFoundError):
            await seen.look("deleted")
        assert [await each for each in (first, *others[1:4])] == ["0", "1", "2", "0"]

    asyncio.run(watch())
    assert queries == [{"0"}, {"0", "1", "2", "deleted"}]


def test_a_token_leaves_half_of_the_disk_and_the_rest_to_its_owner(
    make_client: MakeClient, small_disk: Path, capture: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "OWNER_DISK_SHARE", 3)
    owner = make_client(data=small_disk / "data", token=OWNER, headers=bearer(OWNER))
    one, other = (make(owner, "upload")["secret"] for _ in range(2))

    def upload(data: bytes, token: str) -> Any:
        return owner.post(f"{API}/uploads", params={"name": "a.pcap"}, content=data, headers=bearer(token))

    # It would fit, but takes more than it leaves.
    much = upload(many_connections(36_000), one)
    assert (much.status_code, "ask the owner to delete some" in much.json()["detail"]) == (507, True)
    stored = upload(many_connections(10_000), one)
    assert stored.status_code == 202
    settle(owner, stored.json()["id"])
    assert upload(many_connections(20_000), one).status_code == 507
    assert upload(capture, other).status_code == 202
    disk = owner.app.state.service.disk  # type: ignore[attr-defined]
    # Now its share is taken before the first byte arrives.
    (small_disk / "most").write_bytes(bytes(disk.left_bytes - 100_000))
    refused = upload(capture, one)
    assert (refused.status_code, "ask the owner to delete some" in refused.json()["detail"]) == (507, True)
    (small_disk / "rest").write_bytes(bytes(disk.left_bytes))
    assert upload(capture, other).status_code == 507
    assert analysed(owner, capture)


def test_uploads_of_a_token_count_while_they_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disk, "left_bytes", 100)
    disk = Disk(tmp_path)
    with disk.share("token a", 30) as one, disk.share("token a", 30) as two, disk.share("token b", 30) as other:
        one.arrived_bytes, two.arrived_bytes = 40, 30
        assert (one.refusal, other.refusal) == (None, None)
        two.arrived_bytes = 31
        assert one.refusal is not None
        assert (other.refusal, disk.share(None, 1000).__enter__().refusal) == (None, None)
    assert disk.arriving_bytes("token a") == 0


def test_the_owners_requests_do_not_wait_for_those_of_others(make_client: MakeClient) -> None:
    owner = make_client(token=OWNER, headers=bearer(OWNER))
    reader, path = bearer(make(owner)["secret"]), f"{API}/captures"
    turns = owner.app.state.service.turns  # type: ignore[attr-defined]

    async def hold(held: AsyncExitStack, name: str) -> None:
        set_caller(Caller(name))
        await held.enter_async_context(turns.take())

    assert owner.portal is not None
    held = AsyncExitStack()
    for number in range(OTHERS_TURNS):
        owner.portal.call(hold, held, f"stranger {number}")
    with ThreadPoolExecutor(70) as threads:
        asked = [threads.submit(owner.get, path, headers=reader) for _ in range(70)]
        until(lambda: turns.waiting == 64)
        assert owner.get(path).status_code == 200
        assert owner.get("/healthz", headers=reader).status_code == 200
        assert turns.waiting == 64
        owner.portal.call(held.aclose)
        answers = [each.result() for each in asked]
    refused = [each for each in answers if each.status_code != 200]
    assert {(each.status_code, each.headers["retry-after"]) for each in refused} == {(503, "5")}
    assert len(refused) == 6
    assert turns.taken == 0


def test_logins_of_a_token_count_as_the_token(make_client: MakeClient) -> None:
    owner = make_client(token=OWNER, headers=bearer(OWNER))
    made = make(owner)
    gate = owner.app.state.service.gate  # type: ignore[attr-defined]
    seen = set()

    async def app(scope: Any, _receive: object, _send: object) -> None:
        seen.add((scope["state"]["caller"], scope["state"]["credential"]))

    for _ in range(2):
        session = gate.open_login(made["secret"]).session
        headers = [(b"host", b"localhost"), (b"cookie", f"tcpwin_session={session}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
        ends = {"client": ("192.0.2.1", 1), "server": ("localhost", 80), "scheme": "http"}
        service = owner.app.state.service  # type: ignore[attr-defined]
        asyncio.run(Access(app, gate, service.rates, service.audit)({**scope, **ends}, None, None))  # type: ignore[arg-type]
    assert seen == {(f"token {made['id']} 192.0.2.1", f"token {made['id']}")}


ORDER, GO_ON = "order", "go-on"


def noted_twin(_files: object, _number: int, query: Any, _kernel: str, place: str, _limits: object) -> dict[str, Any]:
    """Instead of running a twin, note its name in the data folder and wait for the test. Runs in a worker."""
    data = Path(place).parents[1]
    with (data / ORDER).open("a") as file:
        file.write(f"{query.round_trip_ns / 1e6:g}\n")
    until((data / GO_ON).exists)
    return {}


def test_twins_run_in_turn(make_client: MakeClient, capture: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's comes after the one that runs, before the others of somebody who requested three."""
    monkeypatch.setattr(twins, "try_twin", noted_twin)
    monkeypatch.setattr(twins.Twins, "kernels", staticmethod(lambda: ("6.1",)))
    owner = make_client(token=OWNER, headers=bearer(OWNER))
    stranger = bearer(make(owner, "upload")["secret"])
    place = f"{API}/captures/{analysed(owner, capture)}/connections/0/twin"
    data = owner.app.state.service.data.path  # type: ignore[attr-defined]
    for number in (1, 2, 3):
        assert owner.post(place, params={"rtt_ms": number}, headers=stranger).status_code == 202
    until((data / ORDER).exists)
    assert owner.post(place, params={"rtt_ms": 9}).status_code == 202
    # A waiting one is cancelled at once.
    assert owner.delete(place, params={"rtt_ms": 2}).json()["status"] == "none"
    (data / GO_ON).touch()
    until(lambda: owner.get(place, params={"rtt_ms": 3}).json()["status"] not in ("waiting", "running"))
    assert (data / ORDER).read_text().split() == ["1", "9", "3"]


@pytest.mark.nightly
def test_thousands_of_unfinished_uploads(host: Host, database_url: str | None, capture: bytes, tmp_path: Path) -> None:
    """In parts and in one request, from many networks: the owner can still upload, and nothing remains."""
    address = host(database_url=database_url, token=OWNER, upload_rate="1000000/minute", trusted_proxies="127.0.0.1")
    with ExitStack() as stack:
        owner = stack.enter_context(httpx2.Client(base_url=address, timeout=HANG_S, headers=bearer(OWNER)))
        token = bearer(make(owner, "upload")["secret"])  # type: ignore[arg-type]
        tus = {**token, "Tus-Resumable": "1.0.0", "Upload-Length": "100000", "Upload-Metadata": "filename YS5wY2Fw"}
        id = owner.post(f"{API}/captures", json={"name": "open"}, headers=token).json()["id"]
        statuses: Counter[int] = Counter()
        for number in range(3000):
            source = {"X-Forwarded-For": f"2001:db8:{number:x}::1"}
            statuses[owner.post(f"{API}/captures/{id}/uploads", headers={**tus, **source}).status_code] += 1
            if number < 1000:
                head = f"POST {API}/uploads?name=half.pcap HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
                lines = "".join(f"{name}: {value}\r\n" for name, value in {**token, **source}.items())
                dial(stack, address, "127.0.0.1", f"{head}{lines}\r\n".encode() + capture[:100])
        # An eighth of 64 is the owner's.
        assert statuses == {201: 56, 503: 2944}
        assert analysed(owner, capture)
        own = owner.post(f"{API}/captures/{id}/uploads", headers={**tus, **bearer(OWNER)})
        assert own.status_code == 201
        assert owner.delete(f"{API}/captures/{id}").status_code == 204
        service_folder = tmp_path / "served" / "incoming"
        owner.delete(own.headers["location"], headers=tus)
    until(lambda: len(list(service_folder.iterdir())) <= 56)


def test_responses_that_nobody_reads_take_little_memory() -> None:
    crowd, much = Crowd(), MOST_UNREAD_BYTES // 8
    owner, guest, busy = Idle(3), Idle(1), Idle(2)
    crowd.hold_unread(owner, "192.0.2.1", 4 * much)
    crowd.hold_unread(guest, "192.0.2.2", much)
    crowd.hold_unread(busy, "192.0.2.3", much)
    crowded = [Idle() for _ in range(20)]
    for each in crowded:
        crowd.hold_unread(each, "192.0.2.3", much)
    # Two of them fit, the newest.
    assert [each.is_dropped for each in crowded] == [True] * 18 + [False] * 2
    assert [each.is_dropped for each in (owner, guest, busy)] == [False] * 3
    crowd.forget_unread(owner)
    more = [Idle() for _ in range(4)]
    for each in more:
        crowd.hold_unread(each, "192.0.2.3", much)
    assert not any(each.is_dropped for each in more)


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
