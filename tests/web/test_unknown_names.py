"""Every API route refuses unknown names in query strings and bodies, and suggests the nearest one."""

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from web.conftest import MakeClient
from web.crafted import API, analysed
from web.test_tokens import OWNER, bearer

from tcpwin_web import Settings, create_app

# Nothing is opened before the application is started.
DOCUMENT = create_app(Settings(data=Path("never-started"))).openapi()
OPERATIONS = [(method, path, each) for path, methods in DOCUMENT["paths"].items() for method, each in methods.items()]
HEALTH = ("/healthz", "/readyz", "/metrics")
"""Parameters that monitors append."""


@pytest.fixture
def owner(make_client: MakeClient) -> TestClient:
    return make_client(host="0.0.0.0", token=OWNER, headers=bearer(OWNER))


def filled(path: str, capture_id: str) -> str:
    return re.sub(r"\{[^}]*\}", "0", path.replace("{capture_id}", capture_id))


def named(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema to which a reference in the document points."""
    found = schema.get("$ref", "").rpartition("/")[2]
    return DOCUMENT["components"]["schemas"][found] if found else schema  # type: ignore[no-any-return]


def refused(answer: Any, words: str) -> None:
    assert answer.status_code == 422, (answer.request.method, str(answer.url), answer.status_code, answer.text)
    assert words in answer.text, answer.text


def test_every_route_refuses_an_extra_name_in_its_query(owner: TestClient, capture: bytes) -> None:
    id = analysed(owner, capture)
    for method, path, _ in OPERATIONS:
        if path not in HEALTH:
            refused(owner.request(method, filled(path, id), params={"nowhere": "1"}), "nknown name 'nowhere'")
    assert owner.get(f"{API}/captures/{id}").json()["status"] == "done"


def test_a_name_that_takes_one_value_is_not_repeated(owner: TestClient, capture: bytes) -> None:
    """The service used the last one, and dropped the others."""
    id = analysed(owner, capture)
    checked: set[bool] = set()
    for method, path, operation in OPERATIONS:
        for each in operation.get("parameters", ()):
            if each["in"] == "query" and path not in HEALTH:
                schema = each["schema"]
                is_list = "array" in [part.get("type") for part in (schema, *schema.get("anyOf", ()))]
                url = f"{filled(path, id)}?{each['name']}=1&{each['name']}=2"
                is_refused = "is given several times" in owner.request(method, url).text
                assert is_refused is not is_list, (method, url)
                checked.add(is_list)
    assert checked == {False, True}
    assert owner.get(f"{API}/captures").json()["total"] == 1


def test_every_json_body_refuses_an_extra_name(owner: TestClient, capture: bytes) -> None:
    id, bodies = analysed(owner, capture), 0
    for method, path, operation in OPERATIONS:
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is not None:
            bodies += 1
            assert named(content["schema"])["additionalProperties"] is False, path
            refused(owner.request(method, filled(path, id), json={"nowhere": 1}), "unknown name 'nowhere'")
    assert bodies >= 5


def test_the_nearest_name_is_given(owner: TestClient, capture: bytes) -> None:
    """Names that people tried and that were silently ignored."""
    id = analysed(owner, capture)
    token = owner.post(f"{API}/tokens", json={"name": "a", "day": 1})
    refused(token, "unknown name 'day': did you mean 'days'?")
    assert owner.get(f"{API}/tokens").json()["tokens"] == []
    refused(owner.post(f"{API}/captures/{id}/shares", json={"expires_days": 1}), "did you mean 'days'?")
    refused(owner.post(f"{API}/captures/{id}/notes", json={"text": "a", "frames": 3}), "did you mean 'frame'?")
    refused(owner.post(f"{API}/captures/{id}/notes", json={"text": "a", "finding": 3}), "unknown name 'finding'")
    upload = owner.post(f"{API}/uploads", params={"name": "a.pcap", "filters": "port 1"}, content=capture)
    refused(upload, "Unknown name 'filters': did you mean 'filter'?")
    refused(owner.get(f"{API}/search", params={"adress": "10."}), "did you mean 'address'?")
    refused(owner.get(f"{API}/captures/{id}/slice", params={"start": 1, "end": 2}), "did you mean 'start_ns'?")
    assert owner.get(f"{API}/captures").json()["total"] == 1
