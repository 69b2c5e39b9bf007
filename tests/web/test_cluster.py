"""Analyses on a Dask cluster equal local ones, whatever happens to its workers."""

import json
import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fleet.cluster import cluster
from live import HANG_S, until
from pydantic import ValidationError
from web.crafted import API, many_connections
from web.running import MakeServer
from web.workers import CONNECTIONS, is_there, let_go

import tcpwin
from tcpwin_web import Settings


def asked(address: str) -> httpx2.Client:
    return httpx2.Client(base_url=address, timeout=HANG_S)


def send(client: httpx2.Client, data: bytes) -> str:
    return str(client.post(f"{API}/uploads?name=x.pcap", content=data).json()["id"])


def settled(client: httpx2.Client, id: str) -> dict[str, Any]:
    while (entry := client.get(f"{API}/captures/{id}").json())["status"] in ("queued", "running"):
        time.sleep(0.05)
    return dict(entry)


def result(client: httpx2.Client, id: str) -> Any:
    return client.get(f"{API}/captures/{id}/connections").json()


def begun(client: httpx2.Client, worker: int, data: Path) -> tuple[str, list[int]]:
    """Yield a capture whose analysis has begun, and the worker's suspended processes."""
    while True:
        id = send(client, many_connections(CONNECTIONS))
        new, done = data / "results" / f"{id}.new", data / "results" / id
        until(lambda new=new, done=done: new.exists() or done.exists(), every_s=0.001)
        processes = spawned(worker)
        for each in processes:
            os.kill(each, signal.SIGSTOP)
        if processes and new.exists() and not done.exists():
            return id, processes
        let_go(processes)


def spawned(worker: int) -> list[int]:
    """Return the processes a worker started for calls, without multiprocessing's helpers."""
    children = [
        child for task in Path(f"/proc/{worker}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def on_cluster(address: str) -> dict[str, str]:
    return {"TCPWIN_EXECUTOR": address.replace("tcp://", "dask://")}


def test_a_cluster_analyses_cancels_and_replaces_a_worker(
    make_server: MakeServer, capture: bytes, tmp_path: Path
) -> None:
    """The result is that of this machine; a cancelled analysis ends; another worker repeats that of a killed one."""
    (tmp_path / "x.pcap").write_bytes(capture)
    [connection] = tcpwin.analyze(tmp_path / "x.pcap")
    with cluster(tmp_path / "cluster", 1) as made:
        _, address = make_server(**on_cluster(made.address))
        with closing(asked(address)) as client:
            id = send(client, capture)
            assert settled(client, id)["status"] == "done"
            found = result(client, id)
            assert found["total"] == 1
            assert connection.verdict.text in json.dumps(found, ensure_ascii=False)

            [worker] = made.workers
            id, processes = begun(client, worker.pid, tmp_path / "served")
            client.delete(f"{API}/captures/{id}/analysis")
            until(lambda: not any(map(is_there, processes)))
            assert settled(client, id)["status"] == "cancelled"

            id, processes = begun(client, worker.pid, tmp_path / "served")
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            until(lambda: not any(map(is_there, processes)))
            assert client.get(f"{API}/captures/{id}").json()["status"] == "running"
            made.begin_worker("another")
            entry = settled(client, id)
            assert entry["status"] == "done", entry
            assert result(client, id)["total"] == CONNECTIONS


@pytest.mark.nightly
def test_without_a_scheduler_the_capture_says_so(make_server: MakeServer, capture: bytes) -> None:
    _, address = make_server(TCPWIN_EXECUTOR="dask://127.0.0.1:1")
    with closing(asked(address)) as client:
        entry = settled(client, send(client, capture))
    assert entry["status"] == "failed"
    assert "scheduler at tcp://127.0.0.1:1 does not respond" in entry["failure"]


@pytest.mark.parametrize("address", ["tcp://10.0.0.5:8786", "dask://10.0.0.5", "dask://x:1/y", "10.0.0.5:8786"])
def test_an_invalid_scheduler_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="not a scheduler's address such as dask://"):
        Settings(executor=address)
