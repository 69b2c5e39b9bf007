"""The service is killed at each step of its event loop during an upload and an analysis: nothing accepted is lost.

A step is the resumption of one await. By day a few steps are tried, spread over all; at night every one.
"""

import asyncio
import os
import signal
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from web.crafted import API, settle

from tcpwin_web import Settings, create_app

BY_DAY = 2
ACCEPTED, STEPS = "accepted", "steps"


def service(folder: Path, url: str | None) -> TestClient:
    app = create_app(Settings(data=folder / "data", workers=1, database_url=url))
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


def run_until(step: int, folder: Path, url: str | None, capture: bytes) -> int:
    """Upload and analyse in a child that is killed at a step, or ends; return how many steps it took."""
    (folder / ACCEPTED).unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            _upload(step, folder, url, capture)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, status
    return int((folder / STEPS).read_text()) if os.WIFEXITED(status) else step


def _upload(step: int, folder: Path, url: str | None, capture: bytes) -> None:
    count, run = 0, asyncio.Handle._run
    # The fork server of earlier tests is no child of this process, which could start no worker with it. A service's
    # own ends with it, and its workers, too.
    server = forkserver._forkserver  # type: ignore[attr-defined]
    server._forkserver_address = server._forkserver_alive_fd = server._forkserver_pid = None

    def counted(handle: asyncio.Handle) -> None:
        nonlocal count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
        run(handle)

    with service(folder, url) as client:
        asyncio.Handle._run = counted  # type: ignore[method-assign]
        answer = client.post(f"{API}/uploads", params={"name": "a.pcap"}, content=capture)
        (folder / "accepting").write_text(answer.json()["id"])
        (folder / "accepting").rename(folder / ACCEPTED)
        place = f"{API}/captures/{answer.json()['id']}"
        # Questions are steps, too.
        while client.get(place).json()["status"] != "done":
            time.sleep(0.3)
        (folder / STEPS).write_text(str(count))
        asyncio.Handle._run = run  # type: ignore[method-assign]
    os._exit(0)


def check(folder: Path, url: str | None, capture: bytes) -> None:
    """The next service finishes what was accepted, says what is missing, and keeps no file that nothing needs.

    Deletes all captures in the end.
    """
    data = folder / "data"
    with service(folder, url) as client:
        listed = client.get(f"{API}/captures").json()["captures"]
        entries = [settle(client, each["id"]) for each in listed]
        done = {each["id"] for each in entries if each["status"] == "done"}
        for each in entries:
            assert each["id"] in done or "send the missing files again" in each["failure"], each
        if (folder / ACCEPTED).exists():
            assert (folder / ACCEPTED).read_text() in done
        # A failed upload keeps what has arrived: only the rest has to be sent again.
        files = {file["sha256"] for each in entries for file in each["files"]}
        assert {path.name for path in (data / "files").glob("*/*")} == files
        assert list((data / "incoming").iterdir()) == []
        assert {path.name for path in (data / "results").iterdir()} == done
        answer = client.post(f"{API}/uploads", params={"name": "again.pcap"}, content=capture)
        assert settle(client, answer.json()["id"])["status"] == "done"
        for each in client.get(f"{API}/captures", params={"limit": 1000}).json()["captures"]:
            client.delete(f"{API}/captures/{each['id']}")


@pytest.fixture
def steps(tmp_path: Path, database_url: str | None, capture: bytes) -> int:
    """The number of steps without a kill."""
    return run_until(0, tmp_path, database_url, capture)


def try_steps(numbers: range, folder: Path, url: str | None, capture: bytes) -> None:
    for number in numbers:
        run_until(number, folder, url, capture)
        try:
            check(folder, url, capture)
        except AssertionError as error:
            error.add_note(f"killed at step {number}")
            raise


def test_a_few_steps(steps: int, tmp_path: Path, database_url: str | None, capture: bytes) -> None:
    assert steps > 50
    try_steps(range(steps // BY_DAY // 2, steps, steps // BY_DAY), tmp_path, database_url, capture)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_every_step(steps: int, tmp_path: Path, database_url: str | None, capture: bytes) -> None:
    try_steps(range(1, steps), tmp_path, database_url, capture)
