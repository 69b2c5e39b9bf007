"""Services on SQLite and on a real PostgreSQL, and captures with known numbers."""

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
from web.postgres import SQLITE_BY_DAY, Postgres
from web.running import Host, MakeServer, hosted, start_server
from web.stalling import running

from tcpwin_web import Settings, create_app

__all__ = ["open_page", "running", "serve", "show"]

MakeClient = Callable[..., TestClient]

# Like the service: structlog's default takes half a minute to format one traceback.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.fixture(scope="session")
def capture() -> bytes:
    """Return a pcap of one connection: 2,000 bytes from the client, then the server's window is 0 from 0.3 s to 2.8
    s.
    """
    return capture_bytes()


@pytest.fixture(scope="session")
def postgres(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """Run a PostgreSQL server with a socket in a temporary folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(tool("initdb")).parent
    with Postgres(programs, tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(params=SQLITE_BY_DAY)
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Return the URL of an empty database; None is SQLite in the data folder."""
    if request.param == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def on_database(database_url: str | None) -> list[str]:
    """Return arguments of the real server that name an empty database."""
    return [] if database_url is None else ["--database-url", database_url]


@pytest.fixture
def make_client(tmp_path: Path, database_url: str | None) -> Iterator[MakeClient]:
    """Start an in-process service with the given settings; it ends with the test."""
    with ExitStack() as stack:

        def make(*, shown: Any = (), headers: dict[str, str] | None = None, **settings: Any) -> TestClient:
            defaults = {"data": tmp_path / "data", "workers": 2, "database_url": database_url}
            app = create_app(Settings(**{**defaults, **settings}), shown)
            return stack.enter_context(
                TestClient(app, base_url="http://localhost", headers=headers, raise_server_exceptions=False)
            )

        yield make


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Start a service in a thread, with the given captures and settings; return its address. It ends with the test."""
    with ExitStack() as stack:

        def start(*shown: Path, **settings: Any) -> str:
            return stack.enter_context(hosted(tmp_path / "served", shown, **settings))

        yield start


@pytest.fixture
def client(make_client: MakeClient) -> TestClient:
    """Start a service without captures."""
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
