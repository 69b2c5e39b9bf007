"""Four loads on a running service, each measured into rows of the service's table."""

import json
import multiprocessing
import random
import socket
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .captures import MIB
from .measure import run
from .rows import Row
from .served import Served, ServiceError, send

SEED = 8642
PAGES = (
    *("/", "/?search=7", "/?sort=-packets", "/?sort=name&offset=500", "/?tag=none", "/upload", "/compare", "/rules"),
    *("/rules/TW201", "/references", "/captures/{id}", "/captures/{id}?search=%3A80", "/captures/{id}/connections/0"),
    *(
        "/captures/{id}/sketches?connection=0",
        "/captures/{id}/connections/0/whatif",
        "/search",
        "/search?address={client}",
    ),
    *("/search?port=80", "/search?host=server", "/search?limited_by=receiver_window", "/search?tag=tried", "/tokens"),
    *("/history?a={client}&b={server}", "/history?tag=tried", "/pair", "/pair?a={id}&b={other}"),
    *("/compare?old={id}&new={other}", "/?tag=tried", "/api/v1/captures/{id}/notes", "/api/v1/tags"),
)
SERIES = ("receive_window", "flight")
FILE_HEAD_BYTES, RECORD_HEAD_BYTES = 24, 16


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile by nearest rank."""
    ranked = sorted(values)
    return ranked[max(-(-int(share * 1000) * len(ranked) // 1000) - 1, 0)]


def first_page(served: Served, tcpwin: Sequence[str], capture: Path, folder: Path, rounds: int) -> list[Row]:
    """Measure upload, analysis and the capture's page relative to a bare upload and `tcpwin analyze` in the same round.

    The first round is not counted: the service then loads what its workers need.
    """
    wall, own, cpu = [], [], []
    for _ in range(rounds + 1):
        sent_s, sent_cpu_s = _bare_upload(capture, folder / "sunk")
        analysed = run([*tcpwin, "analyze", str(capture)])
        before_s, begun = served.cpu_s(), time.perf_counter()
        id = served.send(capture)
        own_s = time.perf_counter() - begun
        served.await_end(id)
        served.ask("GET", f"/captures/{id}")
        took_s = time.perf_counter() - begun
        wall.append(took_s / (sent_s + analysed.wall_s))
        own.append(took_s / (own_s + analysed.wall_s))
        cpu.append((served.cpu_s() - before_s) / (sent_cpu_s + analysed.cpu_s))
        served.ask("DELETE", f"/api/v1/captures/{id}")
    return [
        Row("first page, over a bare upload + `tcpwin analyze`", "ratio", tuple(wall[1:]), 1.5, None),
        Row("first page, over its own upload + `tcpwin analyze`", "ratio", tuple(own[1:]), None, None),
        Row("the same in CPU of the service", "ratio", tuple(cpu[1:]), None, None),
    ]


def pages(served: Served, capture: Path, count: int, rounds: int) -> list[Row]:
    """Measure the service's time per page, by its own clock, with many stored captures."""
    # One first, so that all headers are stored once.
    ids = [served.upload(capture)]
    with ThreadPoolExecutor(4) as pool:
        ids += pool.map(lambda _: served.upload(capture), range(count - 1))
    client, server = _mark(served, ids)
    chosen = random.Random(SEED)
    asked = [page for page in PAGES for _ in range(rounds)]
    chosen.shuffle(asked)
    paths = [
        page.format(id=chosen.choice(ids), other=chosen.choice(ids), client=client, server=server) for page in asked
    ]
    before_s = served.cpu_s()
    took_ms = _times_of(served, lambda path: served.ask("GET", path), paths)
    cpu_ms = (served.cpu_s() - before_s) * 1000 / len(paths)
    of_all = f"a page, p95 of {len(paths):,} with {count:,} captures stored"
    rows = [
        Row(of_all, "ms", (percentile(took_ms, 0.95),), 50, None),
        Row("a page, median", "ms", (percentile(took_ms, 0.5),), None, None),
        Row("a page, CPU of the service on average", "ms", (cpu_ms,), None, None),
    ]
    by_page = {page: [ms for of, ms in zip(asked, took_ms, strict=True) if of == page] for page in PAGES}
    slowest = sorted(by_page, key=lambda page: -percentile(by_page[page], 0.95))
    return rows + [_page_row(page, by_page[page]) for page in slowest]


def _page_row(page: str, took_ms: Sequence[float]) -> Row:
    p95_ms, median_ms = percentile(took_ms, 0.95), percentile(took_ms, 0.5)
    return Row(f"`{page}`, p95 (its median: {median_ms:.0f} ms)", "ms", (p95_ms,), 150, None)


def _mark(served: Served, ids: Sequence[str]) -> tuple[str, str]:
    """Add a tag and a note to every tenth capture; return the addresses of the first one's first connection."""
    for id in ids[::10]:
        place = f"/api/v1/captures/{id}"
        served.ask("PATCH", place, json.dumps({"tags": ["tried"]}).encode())
        served.ask("POST", f"{place}/notes", json.dumps({"text": "seen before", "author": "Ada"}).encode())
    [connection] = json.loads(served.ask("GET", f"/api/v1/captures/{ids[0]}/connections?limit=1"))["connections"]
    return connection["a_address"], connection["b_address"]


def series(served: Served, capture: Path, rounds: int) -> list[Row]:
    """Measure spans of series and figures of connections, both prepared and opened for the first time."""
    id = served.upload(capture)
    place = f"/api/v1/captures/{id}"
    document = json.loads(served.ask("GET", f"{place}/analysis"))
    chosen = random.Random(SEED)
    unprepared = sorted(set(range(document["connections"])) - set(document["worst"]))
    others = chosen.sample(unprepared, min(3 * rounds, len(unprepared)))
    by_page, by_span, by_figure = (others[part::3] for part in range(3))

    def span_of(number: int) -> str:
        listed = served.ask("GET", f"{place}/connections?sort=id&offset={number}&limit=1")
        [connection] = json.loads(listed)["connections"]
        start_ns, length_ns = connection["start_ns"], max(connection["duration_ns"], 1)
        width_ns = max(int(length_ns * 10 ** chosen.uniform(-4, 0)), 1)
        begin_ns = start_ns + chosen.randrange(max(length_ns - width_ns, 1))
        return f"start_ns={begin_ns}&end_ns={begin_ns + width_ns}"

    def series_of(number: int) -> str:
        side, name = chosen.choice(("a_to_b", "b_to_a")), chosen.choice(SERIES)
        points = chosen.choice((500, 1000, 4000))
        return f"{place}/connections/{number}/series/{name}?direction={side}&points={points}&{span_of(number)}"

    def ask(path: object) -> object:
        return served.ask("GET", str(path))

    opened_ms = _times_of(served, ask, [f"{place}/connections/{number}" for number in by_page])
    unopened_ms = _times_of(served, ask, [series_of(number) for number in by_span])
    figures_ms = _times_of(
        served, ask, [f"{place}/connections/{number}/figures/timeline?{span_of(number)}" for number in by_figure]
    )
    spans = [series_of(number) for number in [*document["worst"], *by_page] for _ in range(rounds)]
    chosen.shuffle(spans)
    before_s = served.cpu_s()
    took_ms = _times_of(served, ask, spans)
    cpu_ms = (served.cpu_s() - before_s) * 1000 / len(spans)

    def p95(name: str, values: list[float], must: float | None) -> Row:
        return Row(f"{name}, p95 of {len(values):,}", "ms", (percentile(values, 0.95),), must, None)

    return [
        p95("a span of a series", took_ms, 150),
        p95("a span of a series of a connection that nobody opened before", unopened_ms, 150),
        Row("a span of a series, CPU of the service on average", "ms", (cpu_ms,), None, None),
        Row("the first opening of a connection", "ms", tuple(opened_ms), None, 100),
        p95("the first opening of a connection", opened_ms, None),
        p95("the first opening of a connection, by a figure of a span", figures_ms, None),
    ]


def uploads_at_once(served: Served, capture: Path, folder: Path, count: int, size_bytes: int) -> list[Row]:
    """Run many uploads at once: all are analysed, with bounded memory."""
    files = [_cut(capture, folder / f"part-{number}.pcap", size_bytes, number) for number in range(count)]
    served.peak_bytes = 0
    with ThreadPoolExecutor(count) as pool:
        ids = list(pool.map(lambda file: _or_error(served, file), files))
    failed = [each for each in ids if isinstance(each, ServiceError)]
    for error in failed[:3]:
        print(f"an upload failed: {error}")
    peak_mib = served.peak_bytes / MIB
    sent = f"{count} uploads of {size_bytes / 1e6:g} MB at once"
    return [
        Row(f"{sent}: errors", "", (len(failed),), 0, None),
        # The service may hold a few chunks of each upload; a setting limits the memory of each of its two workers.
        Row(f"{sent}: peak memory of all processes", "MiB", (peak_mib,), 1024, None),
    ]


def _or_error(served: Served, file: Path) -> str | ServiceError:
    try:
        return served.upload(file)
    except ServiceError as error:
        return error


def _times_of(served: Served, ask: Callable[[object], object], asked: Sequence[object]) -> list[float]:
    """Return the milliseconds of each request by the service's clock."""
    times = []
    for each in asked:
        before = len(served.requests)
        ask(each)
        while len(served.requests) == before:
            time.sleep(0.001)
        times.append(float(served.requests[-1]["ms"]))
    return times


def _bare_upload(file: Path, sink: Path) -> tuple[float, float]:
    """Upload a file to a service that only stores it, on the same server; return wall and CPU seconds of storing."""
    context = multiprocessing.get_context("fork")
    there, here = context.Pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        process = context.Process(target=_store, args=(listener, sink, there))
        process.start()
        try:
            # It prints a line once started, and then the upload's times.
            here.recv()
            begun = time.perf_counter()
            send(host, port, "POST", "/", file)
            wall_s = time.perf_counter() - begun
            cpu_s: float = here.recv()
        finally:
            process.kill()
            process.join()
    return wall_s, cpu_s


def _store(listener: socket.socket, sink: Path, there: "multiprocessing.connection.Connection") -> None:
    import uvicorn

    async def app(scope: Any, receive: Any, answer: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await answer({"type": "lifespan.startup.complete"})
            there.send(0.0)
            await receive()
            return
        before_s, more = time.process_time(), True
        with sink.open("wb") as out:
            while more:
                message = await receive()
                out.write(message.get("body", b""))
                more = message.get("more_body", False)
        there.send(time.process_time() - before_s)
        await answer({"type": "http.response.start", "status": 204})
        await answer({"type": "http.response.body"})

    uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listener])


def _cut(capture: Path, part: Path, size_bytes: int, number: int) -> Path:
    """Return a unique file with the first records of a little-endian pcap."""
    with capture.open("rb") as file:
        data = bytearray(file.read(size_bytes))
    end = FILE_HEAD_BYTES
    while end + RECORD_HEAD_BYTES <= len(data):
        after = end + RECORD_HEAD_BYTES + struct.unpack_from("<I", data, end + 8)[0]
        if after > len(data):
            break
        end = after
    # Its first packet is some seconds older.
    struct.pack_into("<I", data, FILE_HEAD_BYTES, struct.unpack_from("<I", data, FILE_HEAD_BYTES)[0] - number)
    part.write_bytes(data[:end])
    return part
