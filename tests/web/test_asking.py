"""Callers: addresses given by proxies, rate limits, the audit log, and permissions of files."""

import re
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import HTTPException, Request
from fastapi.testclient import TestClient
from live import HANG_S, until
from pydantic import ValidationError
from sqlalchemy import text
from web.conftest import MakeClient
from web.crafted import API, analysed
from web.postgres import ON_BOTH
from web.running import hosted

from tcpwin_web import Settings, create_app
from tcpwin_web.anonymise.cryptopan import CryptoPan
from tcpwin_web.limiting import Rates
from tcpwin_web.sharing.keys import AddressKeys

TOKEN = "correct horse battery staple"
BEARER = {"authorization": f"Bearer {TOKEN}"}
FORWARDED = {"x-forwarded-for": "203.0.113.9, 198.51.100.7"}


def entries(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{API}/audit").json()["entries"]
    return found


def test_only_configured_proxies_say_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on loopback: otherwise any local program could forge addresses."""

    def logged_address(**settings: str) -> str:
        with hosted(tmp_path / "data", **settings) as address:
            httpx2.post(f"{address}{API}/captures", json={"name": "x"}, headers=FORWARDED, timeout=HANG_S)
            return str(httpx2.get(f"{address}{API}/audit", timeout=HANG_S).json()["entries"][0]["address"])

    # uvicorn's variable must have no effect.
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert logged_address() == "127.0.0.1"
    # The rightmost address that is not a proxy: clients can write anything to its left.
    assert logged_address(trusted_proxies="127.0.0.0/8, 198.51.100.7") == "203.0.113.9"


def test_a_proxy_is_an_address_or_a_network() -> None:
    for given in ("proxy.example", "10.0.0.0/33", "10.0.0.1/8"):
        with pytest.raises(ValidationError, match="not an address or network"):
            Settings(trusted_proxies=given)


def request_of(address: str, credential: str | None = None) -> Request:
    return Request({"type": "http", "headers": [], "client": (address, 1), "state": {"credential": credential}})


def allowed(rates: Rates, request: Request) -> bool:
    try:
        rates.take("upload", request)
    except HTTPException as error:
        return error.status_code != 429 or int((error.headers or {})["Retry-After"]) < 1
    return True


def test_rates_count_the_address_and_the_login() -> None:
    rates = Rates(upload="2/minute")
    assert [allowed(rates, request_of("192.0.2.1", "ann")) for _ in range(3)] == [True, True, False]
    # Neither another address nor another login gets further with it.
    assert not allowed(rates, request_of("192.0.2.2", "ann"))
    assert not allowed(rates, request_of("192.0.2.1", "ben"))
    assert allowed(rates, request_of("192.0.2.2", "ben"))


def test_rates_go_by_a_clock_that_cannot_be_set() -> None:
    now = 100.0
    rates = Rates(upload="2/minute", clock=lambda: now)
    assert [allowed(rates, request_of("192.0.2.1")) for _ in range(3)] == [True, True, False]
    now += 59
    assert not allowed(rates, request_of("192.0.2.1"))
    now += 2
    assert allowed(rates, request_of("192.0.2.1"))


def test_rates_forget_who_did_something_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpwin_web.limiting.MOST_COUNTED", 20)
    rates = Rates(upload="1/minute")
    for number in range(21):
        rates.take("upload", request_of(f"a{number}"))
    assert len(rates._times) == 20
    assert allowed(rates, request_of("a0"))
    assert not allowed(rates, request_of("a20"))


def test_what_was_seen_shared_and_deleted_is_written_down(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(host="0.0.0.0", token=TOKEN)
    client.headers.update(BEARER)
    id = analysed(client, capture, "very-private.pcap")
    made = client.post(f"{API}/captures/{id}/shares", json={}).json()
    del client.headers["authorization"]
    assert client.get(made["path"]).status_code == 200
    assert client.get(f"{API}{made['path']}/report?format=md").status_code == 200
    client.post("/login", data={"token": TOKEN})
    for _ in range(3):
        assert client.get(f"/captures/{id}", headers={"accept": "text/html"}).status_code == 200
    assert client.get("/compare", params={"old": id, "new": id}).status_code == 200
    csrf = re.search(r'name="csrf-token" content="(\w+)"', client.get("/", headers={"accept": "text/html"}).text)
    own = {"x-csrf-token": csrf[1]}
    assert client.delete(f"{API}/shares/{made['id']}", headers=own).status_code == 204
    assert client.delete(f"{API}/captures/{id}", headers=own).status_code == 204
    client.portal.call(client.app.state.service.audit.write)
    actions = [(each["actor"], each["action"], each["subject"], each["link"]) for each in entries(client)]
    assert set(actions) >= {
        ("token", "capture.upload", id, None),
        ("token", "capture.read", id, None),
        ("token", "share.create", id, made["id"]),
        ("share", "share.open", id, made["id"]),
        ("share", "report.read", id, made["id"]),
        ("session", "capture.read", id, None),
        ("session", "captures.list", None, None),
        ("session", "share.revoke", None, made["id"]),
        ("session", "capture.delete", id, None),
    }
    # Once a minute for the same caller and object.
    assert actions.count(("session", "capture.read", id, None)) == 1
    logins = {each["login"] for each in entries(client) if each["actor"] == "session"}
    assert len(logins) == 1
    assert None not in logins
    assert client.cookies["tcpwin_session"] not in str(entries(client))
    assert "very-private" not in str(entries(client))


def test_a_login_that_was_ended_opens_nothing_wherever_its_cookie_was_copied(make_client: MakeClient) -> None:
    client = make_client(host="0.0.0.0", token=TOKEN)
    page = {"accept": "text/html"}
    client.post("/login", data={"token": TOKEN})
    copied = {"cookie": f"tcpwin_session={client.cookies['tcpwin_session']}"}
    csrf = re.search(r'name="csrf-token" content="(\w+)"', client.get("/", headers=page).text)
    client.cookies.clear()
    assert client.get(f"{API}/captures", headers=copied).status_code == 200
    answer = client.post("/logout", data={"csrf": csrf[1]}, headers=copied, follow_redirects=False)
    assert answer.status_code == 303
    client.cookies.clear()
    assert client.get(f"{API}/captures", headers=copied).status_code == 401
    # Another login is another caller.
    assert client.post("/login", data={"token": TOKEN}).status_code == 200
    assert client.get(f"{API}/captures").status_code == 200


@ON_BOTH
def test_the_audit_log_has_a_most_size(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpwin_web.audit.MOST_ROWS", 3)
    client = make_client()
    for number in range(5):
        client.post(f"{API}/captures", json={"name": str(number)})
    client.portal.call(client.app.state.service.audit.sweep)
    assert [each["action"] for each in entries(client)] == ["capture.create"] * 3


def test_others_may_read_nothing_also_where_the_folder_was_there(tmp_path: Path, capture: bytes) -> None:
    data = tmp_path / "data"
    for folder in (data, data / "keys", data / "files"):
        folder.mkdir(mode=0o755)
    (data / "tcpwin.sqlite3").touch(mode=0o644)
    (data / "keys" / "addresses").write_bytes(bytes(32))
    (data / "keys" / "addresses").chmod(0o644)
    with TestClient(create_app(Settings(data=data, workers=1)), base_url="http://localhost") as client:
        analysed(client, capture)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [data, *data.iterdir(), data / "keys/addresses"]}
    private = {path for path in modes if path.is_dir() or path.name.startswith(("tcpwin.sqlite3", "addresses"))}
    assert {path: oct(modes[path]) for path in private if modes[path] & 0o077} == {}
    assert len(private) >= 6


def test_files_of_the_real_server_are_private(make_server: Any, tmp_path: Path, capture: bytes) -> None:
    _, address = make_server()
    id = httpx2.post(f"{address}{API}/uploads", params={"name": "a.pcap"}, content=capture, timeout=HANG_S).json()["id"]
    until(lambda: httpx2.get(f"{address}{API}/captures/{id}", timeout=HANG_S).json()["status"] == "done")
    assert httpx2.get(f"{address}{API}/captures/{id}/connections/0", timeout=HANG_S).status_code == 200
    paths = list((tmp_path / "served").rglob("*"))
    assert len(paths) > 10
    assert {path: oct(path.stat().st_mode) for path in paths if path.exists() and path.stat().st_mode & 0o077} == {}


def test_the_database_alone_does_not_lead_back_to_addresses(
    make_client: MakeClient, capture: bytes, tmp_path: Path
) -> None:
    """The key is derived from the link's id in the database and a secret elsewhere."""
    client = make_client()
    id = analysed(client, capture)
    made = client.post(f"{API}/captures/{id}/shares", json={}).json()
    shown = client.get(f"{API}{made['path']}").json()["connections"][0]["a_address"]
    secret = (tmp_path / "data" / "keys" / "addresses").read_bytes()
    keys = AddressKeys(tmp_path / "data" / "keys")
    keys.prepare()
    assert CryptoPan(keys.of(made["id"])).address("192.0.2.1") == shown

    async def everything() -> str:
        async with client.app.state.service.database.begin() as session:
            return str([tuple(row) for row in await session.execute(text("SELECT * FROM shares"))])

    kept = client.portal.call(everything)
    assert made["id"] in kept
    assert keys.of(made["id"]).hex() not in kept
    assert secret.hex() not in kept
    # Another link has another key.
    other = client.post(f"{API}/captures/{id}/shares", json={}).json()
    assert client.get(f"{API}{other['path']}").json()["connections"][0]["a_address"] != shown


def test_a_damaged_key_is_said_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "addresses").write_bytes(b"short")
    with pytest.raises(OSError, match="no key of 32 bytes"):
        AddressKeys(tmp_path).prepare()
    assert (tmp_path / "addresses").read_bytes() == b"short"
