"""Access control and page permissions: beyond loopback nothing answers without the token."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import ValidationError
from reference import ROOT
from web.conftest import MakeClient
from web.crafted import API, analysed, settle
from web.test_reports import unpacked

from tcpwin_web import Settings
from tcpwin_web.limiting import Rates
from tcpwin_web.server import main

TOKEN = "correct horse battery staple"
BEARER = {"authorization": f"Bearer {TOKEN}"}
PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HEALTH = {"/healthz", "/readyz"}
LOGIN = {"/login"}


@pytest.fixture
def guarded(make_client: MakeClient) -> TestClient:
    """A service that others can reach."""
    return make_client(host="0.0.0.0", token=TOKEN, login_rate="5/hour")


def every_route(client: TestClient) -> list[tuple[str, str]]:
    """Return methods and paths of the OpenAPI document, the pages and all other routes."""
    document = client.get(f"{API}/openapi.json", headers=BEARER).json()
    found = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    routes = [route for route in _flat(client.app.routes) if isinstance(route, APIRoute)]
    found |= {(method, route.path) for route in routes for method in route.methods}
    return sorted(found)


def _flat(routes: Any) -> Any:
    for route in routes:
        inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        if inner and not isinstance(route, APIRoute):
            yield from _flat(inner)
        else:
            yield route


def test_without_the_token_no_route_answers_but_health_and_the_login(make_client: MakeClient) -> None:
    # Other tests cover the rate limits.
    guarded = make_client(host="0.0.0.0", token=TOKEN, login_rate="10000/minute", guest_rate="10000/minute")
    routes = every_route(guarded)
    assert len({path for _, path in routes}) > 30
    for method, path in routes:
        url = re.sub(r"\{[^}]*\}", "0", path.replace("{name:path}", "page.css"))
        for headers in ({}, PAGE, {"authorization": "Bearer wrong"}, {"cookie": "tcpwin_session=forged"}):
            answer = guarded.request(method, url, headers=headers, follow_redirects=False)
            if path in HEALTH:
                assert answer.status_code == 200
            elif path in LOGIN:
                assert answer.status_code in (200, 405, 422)
            elif path.startswith(("/static", "/shared", f"{API}/shared")):
                # Assets are public; a share link needs its secret, which this client lacks.
                assert answer.status_code == (200 if path.startswith("/static") else 404), (method, path)
            elif answer.status_code == 303:
                assert answer.headers["location"].startswith("/login?next=")
            else:
                assert answer.status_code == 401, (method, path)
                assert answer.headers["www-authenticate"] == "Bearer"


def test_the_token_opens_the_api_and_the_login_opens_the_pages(guarded: TestClient) -> None:
    assert guarded.get(f"{API}/captures", headers=BEARER).status_code == 200
    assert guarded.get("/", headers=PAGE, follow_redirects=False).headers["location"] == "/login?next=/"
    assert guarded.post("/login", data={"token": "wrong"}).status_code == 403
    answer = guarded.post("/login", data={"token": TOKEN, "next": "/rules"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/rules")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = guarded.get("/", headers=PAGE)
    assert "Log out" in page.text
    forged = "x" + guarded.cookies["tcpwin_session"]
    guarded.cookies.clear()
    answer = guarded.get("/", headers={**PAGE, "cookie": f"tcpwin_session={forged}"}, follow_redirects=False)
    assert answer.status_code == 303


def test_a_login_leads_nowhere_else(guarded: TestClient) -> None:
    for path in ("//evil.example", "/\\evil.example", "https://evil.example", "evil"):
        answer = guarded.post("/login", data={"token": TOKEN, "next": path}, follow_redirects=False)
        assert answer.headers["location"] == "/", path


def test_guessing_tokens_is_slowed_down(guarded: TestClient) -> None:
    statuses = [guarded.post("/login", data={"token": str(number)}).status_code for number in range(7)]
    assert statuses == [403] * 5 + [429] * 2


def test_guessing_tokens_of_the_api_is_slowed_down(guarded: TestClient) -> None:
    def guess(token: str) -> tuple[int, int]:
        answer = guarded.get(f"{API}/captures", headers={"authorization": f"Bearer {token}"})
        assert answer.headers["content-type"] == "application/problem+json" or answer.status_code == 200
        return answer.status_code, int(answer.headers.get("retry-after", 0))

    assert [guess(str(number))[0] for number in range(5)] == [401] * 5
    # From here on the right token is refused like wrong ones, so that guessing it reveals nothing.
    refused = [guess(token) for token in ("6", TOKEN)]
    assert [status for status, _ in refused] == [429, 429]
    assert all(0 < seconds <= 3600 for _, seconds in refused)
    assert guarded.get("/healthz", headers={"authorization": "Bearer 7"}).status_code == 200
    # Logins are counted separately, and existing ones continue.
    assert guarded.post("/login", data={"token": TOKEN}, follow_redirects=False).status_code == 303
    guarded.portal.call(guarded.app.state.service.audit.write)  # type: ignore[union-attr, attr-defined]
    entries = guarded.get(f"{API}/audit").json()["entries"]
    assert [entry["action"] for entry in entries] == ["token.refused"] * 5 + ["login"]


def test_the_right_token_is_not_counted(guarded: TestClient) -> None:
    assert {guarded.get(f"{API}/captures", headers=BEARER).status_code for _ in range(20)} == {200}


def test_a_network_of_ipv6_is_counted_as_one() -> None:
    rates = Rates(login="2/minute")

    def take(address: str) -> int:
        try:
            rates.take("login", Request({"type": "http", "headers": [], "client": (address, 1)}))
        except HTTPException as error:
            return error.status_code
        return 200

    assert [take(f"2001:db8:0:1::{host:x}") for host in range(3)] == [200, 200, 429]
    assert take("2001:db8:0:2::1") == 200
    assert [take(f"::ffff:192.0.2.{host}") for host in range(3)] == [200] * 3
    assert [take(each) for each in ("192.0.2.9", "192.0.2.9", "192.0.2.9", "fe80::1%eth0")] == [200, 200, 429, 200]


def test_a_page_of_another_site_changes_nothing(guarded: TestClient) -> None:
    guarded.post("/login", data={"token": TOKEN})
    new = {"json": {"name": "x"}}
    assert guarded.post(f"{API}/captures", **new).status_code == 403
    csrf = re.search(r'name="csrf-token" content="(\w+)"', guarded.get("/", headers=PAGE).text)
    own = {"x-csrf-token": csrf[1]}
    assert guarded.post(f"{API}/captures", headers=own, **new).status_code == 201
    for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        assert guarded.post(f"{API}/captures", headers={**own, **foreign}, **new).status_code == 403
    assert guarded.post("/logout", data={"csrf": "wrong"}).status_code == 403
    assert guarded.post("/logout", data={"csrf": csrf[1]}, follow_redirects=False).status_code == 303


def test_on_loopback_too_a_page_of_another_site_changes_nothing(make_client: MakeClient) -> None:
    client = make_client()
    for foreign in (
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert client.post(f"{API}/captures", headers=foreign, json={"name": "x"}).status_code == 403
    assert client.post(f"{API}/captures", headers={"origin": "http://localhost"}, json={"name": "x"}).status_code == 201
    assert client.post("/upload", files={"files": b"x"}, data={"csrf": "wrong"}).status_code == 403


def test_a_name_of_another_site_is_refused(make_client: MakeClient) -> None:
    client = make_client(allowed_hosts="dashboard.example")
    assert client.get("/", headers={"host": "rebound.example"}).status_code == 400
    two = [("host", "localhost"), ("host", "rebound.example")]
    assert client.get("/", headers=two).status_code == 400
    for host in ("[::1]:8642", "[::1]", "127.0.0.1:1", "localhost", "dashboard.example:80"):
        assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_every_response_forbids_inline_and_foreign_script(make_client: MakeClient) -> None:
    client = make_client()
    paths = ("/", "/healthz", "/static/page.css", "/api/v1/captures/absent", "/upload", "/rules", "/references")
    for headers in (client.get(path, headers=PAGE).headers for path in paths):
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["script-src"]) == ("'none'", "'self'")
        assert policy["frame-ancestors"] == "'none'"
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")


def test_pages_hold_no_inline_code_and_name_no_other_host(make_client: MakeClient, capture: bytes) -> None:
    client = make_client()
    id = analysed(client, capture)
    paths = [
        "/",
        "/upload",
        "/compare",
        "/pair",
        f"/pair?a={id}&b={id}",
        "/rules",
        "/rules/TW201",
        "/references",
        f"/captures/{id}",
        f"/captures/{id}/connections/0",
    ]
    for path in paths:
        answer = client.get(path, headers=PAGE)
        assert answer.status_code == 200, path
        assert not re.search(r"<style| style=|<script(?! src=\"/static/)| on[a-z]+=", answer.text), path
        links = re.findall(r'(?:href|src|action)="([^"]*)"', answer.text)
        assert [link for link in links if re.match(r"\w+:|//", link)] == [], path
        for asset in {link for link in links if link.startswith("/static/")}:
            assert client.get(asset).status_code == 200


def test_a_share_link_needs_no_token_and_shows_no_address(guarded: TestClient, capture: bytes) -> None:
    guarded.headers.update(BEARER)
    id = analysed(guarded, capture)
    made = guarded.post(f"{API}/captures/{id}/shares", json={"days": 1, "anonymise": True}).json()
    plain = guarded.post(f"{API}/captures/{id}/shares", json={"days": 1, "anonymise": False}).json()
    del guarded.headers["authorization"]
    page = guarded.get(made["path"], headers=PAGE)
    assert page.status_code == 200
    assert "192.0.2.1" not in page.text
    assert "198.51.100.2" not in page.text
    document = guarded.get(f"{API}{made['path']}").json()
    assert (document["name"], document["is_anonymised"]) == ("a capture", True)
    assert document["connections"][0]["a_port"] == 40000
    assert "192.0.2.1" in guarded.get(plain["path"], headers=PAGE).text
    # It opens nothing else.
    assert guarded.get(f"{API}/captures/{id}").status_code == 401
    assert guarded.get(f"{API}/captures/{id}/shares").status_code == 401

    guarded.headers.update(BEARER)
    assert len(guarded.get(f"{API}/captures/{id}/shares").json()["shares"]) == 2
    assert guarded.delete(f"{API}/shares/{made['id']}").status_code == 204
    assert guarded.delete(f"{API}/shares/{made['id']}").status_code == 404
    assert guarded.get(made["path"]).status_code == 404
    assert guarded.post(f"{API}/captures/{id}/shares", json={"days": 3000}).status_code == 422


def test_a_link_without_addresses_hides_hosts_names(client: TestClient, capture: bytes) -> None:
    """A finding based on counters names their host by its file; only the link with real addresses may show it."""
    counters = "t,PruneCalled,TCPRcvCollapsed\n1700000000.0,0,0\n1700000003.0,90,9000\n"
    id = client.post(f"{API}/captures", json={"name": "a case"}).json()["id"]
    for name, content in (("nstat_db-prod-7.csv", counters.encode()), ("zero.pcap", capture)):
        answer = client.put(f"{API}/captures/{id}/files", params={"name": name}, content=content)
        assert answer.status_code == 201, answer.text
    client.post(f"{API}/captures/{id}/analysis")
    assert settle(client, id)["status"] == "done"
    for anonymise in (True, False):
        made = client.post(f"{API}/captures/{id}/shares", json={"anonymise": anonymise}).json()
        texts = [client.get(made["path"], headers=PAGE).text, client.get(f"{API}{made['path']}").text]
        for each in texts:
            assert (each.count("db-prod-7") == 0, "TW209" not in each) == (anonymise, anonymise)
            assert "TW201" in each


def test_a_link_without_addresses_names_no_file_that_is_damaged(client: TestClient, capture: bytes) -> None:
    """A finding names the damaged file, and a report the unread parts."""
    id = analysed(client, capture[:-20], "db-prod-7.pcap")
    for anonymise in (True, False):
        made = client.post(f"{API}/captures/{id}/shares", json={"anonymise": anonymise}).json()
        place = f"{API}{made['path']}"
        texts = [client.get(made["path"], headers=PAGE).text, client.get(place).text]
        texts += [client.get(f"{place}/report", params={"format": "md"}).text]
        texts += [unpacked(client.get(f"{place}/report").text)]
        for each in texts:
            assert ("TW605" in each, "db-prod-7" in each) == (True, not anonymise)


def test_deleted_data_is_in_no_file_any_more(make_client: MakeClient, capture: bytes, tmp_path: Path) -> None:
    client = make_client(database_url=None)
    id = analysed(client, capture, "secret-host.pcap")
    client.patch(f"{API}/captures/{id}", json={"tags": ["secret-tag"]})
    for path in ("/connections/0", "/report?format=html", "/connections/0/figures/window"):
        assert client.get(f"{API}/captures/{id}{path}").status_code == 200
    made = client.post(f"{API}/captures/{id}/shares", json={}).json()
    assert client.get(made["path"], headers=PAGE).status_code == 200
    words = (b"secret-host", b"secret-tag", b"192.0.2.1", bytes([192, 0, 2, 1]), b"198.51.100.2", id.encode())

    def holding(word: bytes) -> list[Path]:
        return [path for path in (tmp_path / "data").rglob("*") if path.is_file() and word in path.read_bytes()]

    assert all(holding(word) for word in words)
    client.delete(f"{API}/captures/{id}")
    # The audit log keeps its id.
    assert {word: holding(word) for word in words[:-1]} == {word: [] for word in words[:-1]}
    assert not [path for path in (tmp_path / "data").rglob("*") if id in path.name]


def test_head_is_answered_as_get_without_the_content(make_client: MakeClient) -> None:
    client = make_client()
    for path in ("/", "/healthz", "/metrics", f"{API}/captures", f"{API}/openapi.json", "/nothing"):
        shown, head = client.get(path, headers=PAGE), client.head(path, headers=PAGE)
        assert (head.status_code, head.content) == (shown.status_code, b""), path
        if path != "/metrics":
            assert head.headers == shown.headers
        assert shown.headers["cache-control"] == "no-store", path
    assert client.head(f"{API}/captures/x/progress").status_code == 405


def test_a_link_ends_by_itself(make_client: MakeClient, capture: bytes) -> None:
    client = make_client()
    id = analysed(client, capture)
    made = client.post(f"{API}/captures/{id}/shares", json={"days": 1e-9}).json()
    assert client.get(made["path"]).status_code == 404


def test_uploads_are_limited_in_size_and_rate(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(max_upload_bytes=1000, upload_rate="3/hour")
    answer = client.post(f"{API}/uploads", params={"name": "x.pcap"}, content=capture)
    assert answer.status_code == 413
    assert "1,000 bytes" in answer.json()["detail"]
    assert client.get(f"{API}/captures").json()["total"] == 0
    # A form is in a temporary file before it can be examined.
    form = client.post("/upload", files={"files": bytes(3 << 20)}, data={"csrf": "x"})
    assert (form.status_code, "bytes at most" in form.json()["detail"]) == (413, True)
    client.post(f"{API}/captures", json={"name": "x"})
    answer = client.post(f"{API}/captures", json={"name": "x"})
    assert (answer.status_code, "retry-after" in answer.headers) == (429, True)


def test_an_encoded_body_is_refused(client: TestClient, capture: bytes) -> None:
    """It was read as if it had no encoding; a file that is compressed itself is read as before."""
    encoded = {"Content-Encoding": "br", "Content-Type": "application/json"}
    upload = {"params": {"name": "a.pcap.gz"}, "content": gzip.compress(capture)}
    for answer in (
        client.post(f"{API}/captures", content=b'{"name": "a"}', headers=encoded),
        client.post(f"{API}/uploads", **upload, headers={"Content-Encoding": "gzip"}),
    ):
        assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity"), answer.text
    assert client.get(f"{API}/captures").json()["total"] == 0
    assert client.post(f"{API}/uploads", **upload, headers={"Content-Encoding": "identity"}).status_code == 202


def test_bodies_other_than_uploads_are_limited(make_client: MakeClient) -> None:
    answer = make_client().post(f"{API}/captures", content=b'{"name": "' + b"x" * (2 << 20) + b'"}')
    assert answer.status_code == 413


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_an_address_that_others_reach_needs_a_token(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(main, ["--host", host])
    assert done.exit_code == 2
    assert "not a loopback address" in done.output
    monkeypatch.setenv("TCPWIN_TOKEN", "short")
    assert "at least 16 characters" in CliRunner().invoke(main, ["--host", host]).output
    assert Settings(host=host, token=TOKEN).is_loopback is False


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCPWIN_UPLOAD_RATE", "often")
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 2
    assert "TCPWIN_UPLOAD_RATE" in done.output
    with pytest.raises(ValidationError):
        Settings(job_memory_bytes=1)


def test_help_lists_every_setting() -> None:
    help_text = CliRunner().invoke(main, ["--help"]).output
    for name in Settings.model_fields:
        assert f"TCPWIN_{name.upper()}" in help_text


def test_the_readme_names_every_setting() -> None:
    readme = (ROOT / "web" / "README.md").read_text(encoding="utf8")
    assert {f"TCPWIN_{name.upper()}" for name in Settings.model_fields} == set(re.findall(r"TCPWIN_[A-Z_]+", readme))
