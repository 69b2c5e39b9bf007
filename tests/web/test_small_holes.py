"""Small holes: identical parts of an upload, repeated metadata, readers that race a deletion, an unusable encoding."""

import base64
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import HANG_S, until
from web.conftest import MakeClient
from web.crafted import API, many_connections, settle
from web.postgres import Postgres
from web.running import Host
from web.workers import forkers, let_go

from tcpwin_web import Settings, create_app

TUS = {"Tus-Resumable": "1.0.0"}
TWELVE = 12


def begin(client: httpx2.Client, length: int, metadata: str = "filename YS5wY2Fw") -> httpx2.Response:
    id = client.post(f"{API}/captures", json={"name": "parts"}).json()["id"]
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata}
    return client.post(f"{API}/captures/{id}/uploads", headers=headers)


def test_identical_parts_at_the_same_time(host: Host, database_url: str | None) -> None:
    """One of them is taken, or each in turn is displaced by the next; none is told that it is too large."""
    data = many_connections(3000)
    with httpx2.Client(base_url=host(database_url=database_url), timeout=HANG_S) as client:
        place = begin(client, len(data)).headers["location"]
        part = {**TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}

        def send(_: int) -> int:
            return client.patch(place, headers=part, content=data).status_code

        with ThreadPoolExecutor(TWELVE) as threads:
            statuses = set(threads.map(send, range(TWELVE)))
        assert statuses <= {204, 409, 423}, statuses
        offset = int(client.head(place, headers=TUS).headers["upload-offset"])
        rest = client.patch(place, headers={**part, "Upload-Offset": str(offset)}, content=data[offset:])
        assert rest.status_code == 204
        id = place.split("/")[4]
        assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
        assert settle(client, id)["connections"] == 3000


def test_a_repeated_metadata_key_is_refused(client: TestClient) -> None:
    name = base64.b64encode(b"a.pcap").decode()
    answer = begin(client, 5, f"filename {name},filename {name}")
    assert (answer.status_code, "filename is repeated" in answer.json()["detail"]) == (400, True)


def test_a_reader_that_races_a_deletion_gets_404(host: Host, database_url: str | None) -> None:
    with (
        httpx2.Client(base_url=host(database_url=database_url, workers=1), timeout=HANG_S) as client,
        ThreadPoolExecutor(1) as threads,
    ):
        answer = client.post(f"{API}/uploads", params={"name": "many.pcap"}, content=many_connections(500))
        place = f"{API}/captures/{answer.json()['id']}"
        assert settle(client, answer.json()["id"])["status"] == "done"
        stopped = forkers(os.getpid())
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            reading = threads.submit(client.get, f"{place}/report")
            until(lambda: 'tcpwin_taken{kind="answers"} 1.0' in client.get("/metrics").text)
            assert client.delete(place).status_code == 204
        finally:
            let_go(stopped)
        answer = reading.result(HANG_S)
        assert (answer.status_code, answer.json()["detail"]) == (404, "The capture has just been deleted.")


def test_a_database_in_sql_ascii_is_refused(postgres: Postgres, tmp_path: object) -> None:
    url = postgres.new_database("ENCODING 'SQL_ASCII' TEMPLATE template0")
    app = create_app(Settings(data=tmp_path, database_url=url))
    with pytest.raises(Exception, match="SQL_ASCII"), TestClient(app):
        pass
    assert app.state.service.failure.startswith("the database has the encoding SQL_ASCII")


def test_the_fleets_page_without_duckdb(
    make_client: MakeClient, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    answer = make_client(fleet=tmp_path).get("/fleet", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/html; charset=utf-8")
