"""API tokens: permissions of each scope, expiry, audit entries, and the page."""

import re
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from web.browsing import TOKEN, OpenPage, Serve
from web.conftest import MakeClient
from web.crafted import API, analysed
from web.postgres import ON_BOTH
from web.test_journey import check
from web.test_security import every_route

from tcpwin_web import Settings, create_app
from tcpwin_web.security.scopes import Scope
from tcpwin_web.security.tokens import PREFIX

OWNER = "correct horse battery staple"
UPLOADERS = {
    ("POST", "/upload"),
    ("POST", f"{API}/uploads"),
    ("POST", f"{API}/captures"),
    ("PATCH", f"{API}/captures/{{capture_id}}"),
    ("PUT", f"{API}/captures/{{capture_id}}/files"),
    ("POST", f"{API}/captures/{{capture_id}}/analysis"),
    ("DELETE", f"{API}/captures/{{capture_id}}/analysis"),
    ("POST", f"{API}/captures/{{capture_id}}/notes"),
    ("POST", f"{API}/captures/{{capture_id}}/connections/{{connection_id}}/twin"),
    ("DELETE", f"{API}/captures/{{capture_id}}/connections/{{connection_id}}/twin"),
    ("POST", f"{API}/captures/{{capture_id}}/uploads"),
    ("PATCH", f"{API}/captures/{{capture_id}}/uploads/{{upload_id}}"),
    ("DELETE", f"{API}/captures/{{capture_id}}/uploads/{{upload_id}}"),
}
READERS = {("POST", "/logout")}
ADMINS = {f"{API}/audit", f"{API}/tokens", "/tokens"}
"""Routes that only read, but not for everyone."""
OPEN = ("/healthz", "/readyz", "/login", "/static", "/shared", f"{API}/shared")


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def owner(make_client: MakeClient) -> TestClient:
    """Log in as the owner of a service that others can reach."""
    return make_client(host="0.0.0.0", token=OWNER, login_rate="5/hour", headers=bearer(OWNER))


def make(client: TestClient, scope: str = "read", days: float = 1, name: str = "a script") -> Any:
    answer = client.post(f"{API}/tokens", json={"name": name, "scope": scope, "days": days})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_guessing_locks_no_api_token_out(make_client: MakeClient) -> None:
    owner = make_client(token=OWNER, login_rate="3/hour")
    made = owner.post(f"{API}/tokens", json={"name": "a script", "scope": "admin"}, headers=bearer(OWNER)).json()

    def statuses(*tokens: str) -> list[int]:
        return [owner.get(f"{API}/captures", headers=bearer(each)).status_code for each in tokens]

    assert statuses("1", "2", "3", "4", OWNER, made["secret"]) == [401, 401, 401, 429, 429, 200]


def refused(answer: Any, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_each_scope_opens_what_it_names_and_nothing_else(owner: TestClient) -> None:
    """Every route is tried: a new one that changes something needs admin until it is listed here."""
    shown = {scope: bearer(make(owner, scope)["secret"]) for scope in Scope}
    for method, path in every_route(owner):
        if path.startswith(OPEN) or method == "HEAD":
            continue
        is_read = method in ("GET", "OPTIONS")
        needed = Scope.READ if (method, path) in READERS or (is_read and path not in ADMINS) else Scope.ADMIN
        needed = Scope.UPLOAD if (method, path) in UPLOADERS else needed
        url = re.sub(r"\{[^}]*\}", "0", path)
        for scope, headers in shown.items():
            answer = owner.request(method, url, headers=headers, follow_redirects=False)
            if scope.includes(needed):
                assert answer.status_code != 401, (method, path)
                # A page's form requires more than a token.
                assert answer.status_code != 403 or path in ("/upload", "/logout"), (method, path, scope)
                assert "scope" not in answer.text or answer.status_code != 403, (method, path, scope)
            else:
                refused(answer, 403, f"needs a token with the scope {needed}; yours has the scope {scope}.")
                assert f'scope="{needed}"' in answer.headers["www-authenticate"]


def test_a_reader_reads_and_an_uploader_uploads(owner: TestClient, capture: bytes) -> None:
    reader, uploader = bearer(make(owner)["secret"]), bearer(make(owner, "upload")["secret"])
    answer = owner.post(f"{API}/uploads", params={"name": "x.pcap"}, content=capture, headers=reader)
    refused(answer, 403, "scope upload")
    id = analysed(owner, capture)
    assert owner.get(f"{API}/captures/{id}", headers=reader).json()["status"] == "done"
    answer = owner.post(f"{API}/uploads", params={"name": "x.pcap"}, content=capture, headers=uploader)
    assert answer.status_code == 202
    refused(owner.delete(f"{API}/captures/{id}", headers=uploader), 403, "scope admin")
    refused(owner.get(f"{API}/audit/", headers=reader, follow_redirects=False), 403, "scope admin")
    assert owner.delete(f"{API}/captures/{id}", headers=bearer(make(owner, "admin")["secret"])).status_code == 204


def test_a_secret_is_shown_once_and_stored_as_a_hash(make_client: MakeClient, tmp_path: Path) -> None:
    owner = make_client(host="0.0.0.0", token=OWNER, headers=bearer(OWNER), database_url=None)
    made = make(owner, name="  CI ")
    assert made["secret"].startswith(PREFIX)
    listed = owner.get(f"{API}/tokens").json()["tokens"]
    assert listed == [{name: value for name, value in made.items() if name != "secret"}]
    assert (listed[0]["name"], listed[0]["scope"], listed[0]["is_valid"]) == ("CI", "read", True)
    assert listed[0]["expires_ns"] - listed[0]["created_ns"] == pytest.approx(86_400e9, rel=1e-3)
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path for path in files if made["secret"].encode() in path.read_bytes()] == []
    assert made["secret"] not in owner.get("/tokens").text


def test_a_token_that_is_over_opens_nothing_and_says_so(owner: TestClient) -> None:
    made, short = make(owner, "admin"), make(owner, days=1e-9)
    assert owner.get(f"{API}/captures", headers=bearer(made["secret"])).status_code == 200
    refused(owner.get(f"{API}/captures", headers=bearer(short["secret"])), 401, "This token expired on 20")
    login = owner.post("/login", data={"token": made["secret"]}, follow_redirects=False)
    cookie = {"cookie": f"tcpwin_session={login.cookies['tcpwin_session']}", "authorization": ""}
    owner.cookies.clear()
    assert owner.get(f"{API}/captures", headers=cookie).status_code == 200
    assert owner.delete(f"{API}/tokens/{made['id']}").status_code == 204
    assert owner.delete(f"{API}/tokens/{made['id']}").status_code == 404
    # More often than the limit for wrong tokens: a once valid token is not a guess.
    for _ in range(8):
        refused(owner.get(f"{API}/captures", headers=bearer(made["secret"])), 401, "This token was revoked on 20")
    # Its logins end with it.
    assert owner.get(f"{API}/captures", headers=cookie).status_code == 401
    for over in (made, short):
        assert owner.post("/login", data={"token": over["secret"]}).status_code == 403
    states = {
        each["id"]: (each["is_valid"], each["revoked_ns"] is None)
        for each in owner.get(f"{API}/tokens").json()["tokens"]
    }
    assert states == {made["id"]: (False, False), short["id"]: (False, True)}


def test_the_log_says_which_token_it_was(owner: TestClient, capture: bytes) -> None:
    made = make(owner, "upload")
    owner.post(f"{API}/uploads", params={"name": "x.pcap"}, content=capture, headers=bearer(made["secret"]))
    owner.get(f"{API}/audit", headers=bearer(made["secret"]))
    owner.delete(f"{API}/tokens/{made['id']}")
    owner.get(f"{API}/captures", headers=bearer(made["secret"]))
    expected = {
        ("token.create", made["id"], None),
        ("capture.upload", None, made["id"]),
        ("scope.refused", None, made["id"]),
        ("token.revoke", made["id"], None),
        ("token.refused", made["id"], None),
    }
    while True:
        entries = owner.get(f"{API}/audit").json()["entries"]
        allowed = {
            (each["action"], None if each["action"] == "capture.upload" else each["subject"], each["token"])
            for each in entries
        }
        if expected <= allowed:
            break
        time.sleep(0.1)
    assert made["secret"] not in str(entries)


def test_invalid_tokens_are_refused(owner: TestClient) -> None:
    for new, words in (
        ({"name": " "}, "at least 1 character"),
        ({"name": "x" * 65}, "64"),
        ({"name": "a\0b"}, "NUL"),
        ({"name": "x", "scope": "root"}, "'read', 'upload' or 'admin'"),
        ({"name": "x", "days": 0}, "greater than 0"),
        ({"name": "x", "days": 1e6}, "less than or equal to 3650"),
    ):
        answer = owner.post(f"{API}/tokens", json=new)
        assert (answer.status_code, words in answer.text) == (422, True), (new, answer.text)


def test_a_service_without_a_token_creates_none(client: TestClient) -> None:
    answer = client.post(f"{API}/tokens", json={"name": "x"})
    assert (answer.status_code, "TCPWIN_TOKEN" in answer.json()["detail"]) == (409, True)
    assert "TCPWIN_TOKEN" in client.get("/tokens").text


@ON_BOTH
def test_they_outlive_the_service(database_url: str | None, tmp_path: Path) -> None:
    settings = Settings(host="0.0.0.0", token=OWNER, data=tmp_path, database_url=database_url)
    with TestClient(create_app(settings), headers=bearer(OWNER)) as first:
        made, over = make(first), make(first)
        first.delete(f"{API}/tokens/{over['id']}")
    with TestClient(create_app(settings)) as second:
        assert second.get(f"{API}/captures", headers=bearer(made["secret"])).status_code == 200
        refused(second.get(f"{API}/captures", headers=bearer(over["secret"])), 401, "revoked")


def test_made_used_and_revoked_by_hand(serve: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, _ = serve(capture, token=TOKEN)

    def log_in(token: str, width: int = 1440) -> Any:
        page = open_page(address, width=width)
        page.goto("/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Captures")).to_be_visible()
        return page

    page = log_in(TOKEN)
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name").fill("Ada <reads>")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("#made code")
    expect(secret).to_contain_text(PREFIX)
    shown = secret.text_content() or ""
    check(page)
    page.get_by_role("link", name="Copied: show the list").click()
    expect(page.get_by_role("row", name="Ada <reads>")).to_contain_text("read")
    assert shown not in page.content()
    check(page)

    reader = log_in(shown, 375)
    for name in ("Upload", "Tokens"):
        expect(reader.get_by_role("link", name=name)).to_have_count(0)
    reader.get_by_role("link", name="capture-0.pcap").click()
    expect(reader.locator("#rows table")).to_be_visible()
    for name in ("Delete", "Save", "Add note", "Create a link"):
        expect(reader.get_by_role("button", name=name)).to_have_count(0)
    check(reader)

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke Ada <reads>").click()
    expect(page.get_by_role("row", name="Ada <reads>")).to_contain_text("revoked")
    reader.goto("/")
    expect(reader.get_by_role("heading", name="Log in")).to_be_visible()
    assert httpx2.get(f"{address}{API}/captures", headers=bearer(shown), timeout=None).status_code == 401
