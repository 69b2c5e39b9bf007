"""Services on SQLite and on a real PostgreSQL, and captures of which every number is known."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
from fastapi.testclient import TestClient
from reference import NO_RIGHT
from web.browsing import open_page, serve, show
from web.crafted import capture_bytes
from web.postgres import Postgres
from web.running import MakeServer, start_server
from web.stalling import running

from tcpwin_web import Settings, create_app

__all__ = ["open_page", "running", "serve", "show"]

MakeClient = Callable[..., TestClient]

# As the service does it: structlog's own way takes half a minute to lay out one traceback.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


ASK_NOTHING_OF_THEIR_OWN = (
    *("test_attacked", "test_bundles", "test_index", "test_references", "test_reports", "test_resumable"),
    *("test_security", "test_weight", "test_whatif", "test_words"),
)
"""Files on what has no queries of its own: their tests use the database as others do, on PostgreSQL at night."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if item.path.stem in ASK_NOTHING_OF_THEIR_OWN and parameters.get("database_url") == "postgres":
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session")
def capture() -> bytes:
    """A pcap of one connection: 2,000 bytes from the client, then the server's window is 0 from 0.3 s to 2.8 s."""
    return capture_bytes()


@pytest.fixture(scope="session")
def postgres(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A PostgreSQL server of its own, reached by a socket in a temporary folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(tool("initdb")).parent
    with Postgres(programs, tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield None
        return
    server: Postgres = request.getfixturevalue("postgres")
    yield server.new_database()


@pytest.fixture
def on_database(database_url: str | None) -> list[str]:
    """Arguments of the real server that name an empty database."""
    return [] if database_url is None else ["--database-url", database_url]


@pytest.fixture
def make_client(tmp_path: Path, database_url: str | None) -> Iterator[MakeClient]:
    """Start a service with the given settings, on either database; it ends with the test."""
    with ExitStack() as stack:

        def make(*, shown: Any = (), headers: dict[str, str] | None = None, **settings: Any) -> TestClient:
            defaults = {"data": tmp_path / "data", "workers": 2, "database_url": database_url}
            app = create_app(Settings(**{**defaults, **settings}), shown)
            return stack.enter_context(
                TestClient(app, base_url="http://localhost", headers=headers, raise_server_exceptions=False)
            )

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> TestClient:
    """A service without captures."""
    return make_client()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 8 MB; skip where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip(f"{NO_RIGHT} mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """Start the real server, with the given arguments and environment; returns its process and its address."""
    with ExitStack() as stack:
        yield partial(start_server, stack, tmp_path / "served")
