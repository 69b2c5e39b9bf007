"""schemathesis over the OpenAPI document: no request makes the service fail.

By day a few requests to each operation, on SQLite; at night many, on PostgreSQL.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import all_cases
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from web.crafted import API, analysed, capture_bytes
from web.postgres import SQLITE_BY_DAY

from tcpwin_web import Settings, create_app

# This stream lasts as long as an analysis waits.
ENDLESS = f"{API}/captures/{{capture_id}}/progress"

SENT = ("method", "url", "headers", "params", "json")


def operations() -> Iterator[Any]:
    # Collecting the tests needs none of this.
    import schemathesis

    # Nothing is opened before the application is started.
    described = schemathesis.openapi.from_dict(create_app(Settings(data=Path("never-started"))).openapi())
    schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
    return (each for each in (found.ok() for found in described.get_all_operations()) if each.path != ENDLESS)


@pytest.fixture(scope="module", params=SQLITE_BY_DAY)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    much = "1000000/minute"
    rates = {"upload_rate": much, "guest_rate": much, "guest_report_rate": much}
    url = request.getfixturevalue("postgres").new_database() if request.param == "postgres" else None
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), workers=1, database_url=url, **rates))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def known(served: TestClient) -> str:
    return analysed(served, capture_bytes())


@all_cases("operation", operations, ids=lambda each: f"{each.method} {each.path}")
def test_no_request_makes_the_service_fail(operation: Any, served: TestClient, known: str) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=5 if served.app.state.service.settings.database_url is None else 50,  # type: ignore[attr-defined]
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )
    def ask(case: Any) -> None:
        parameters = dict(case.path_parameters or {})
        # Every second request refers to the existing capture.
        if len(str(parameters.get("capture_id", ""))) % 2 and case.method != "DELETE":
            case.path_parameters["capture_id"] = known
        asked = case.as_transport_kwargs(base_url="http://localhost")
        body = asked.pop("data", None)
        content = body if isinstance(body, bytes | str) else None
        answer = served.request(**{name: asked[name] for name in SENT if asked.get(name) is not None}, content=content)
        assert answer.status_code < 500, (case.method, answer.url, answer.status_code, answer.text)

    ask()
