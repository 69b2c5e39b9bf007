"""A PostgreSQL server for tests, created by initdb in a temporary folder with a socket there."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import pytest
from spread import some_by_day
from web.workers import descendants, let_go

UNPRIVILEGED = ("postgres", "nobody")
"""User that runs the server if the tests run as root, which PostgreSQL refuses."""


SQLITE_BY_DAY = some_by_day(["sqlite", "postgres"], of=2)
ON_BOTH = pytest.mark.parametrize("database_url", some_by_day(["postgres", "sqlite"], of=2), indirect=True)
"""For tests in which the databases differ: locks, claims, concurrent changes, SQL dialect. By day only on
PostgreSQL: all other tests run on SQLite.
"""


class Postgres:
    """A running server."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._log = folder / "log"
        self._count = 0

    def __enter__(self) -> Self:
        # The path of a socket must be short and accessible to another user.
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = next(name for name in UNPRIVILEGED if _is_user(name))
            options = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            shutil.chown(self._folder, user)
        data = self._folder / "data"
        subprocess.run(
            [self._programs / "initdb", "-D", data, "-U", "tests", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"],
            check=True,
            capture_output=True,
            cwd=self._folder,
            **options,
        )
        self._options = options
        self.start()
        return self

    def start(self) -> None:
        """Start the server on its existing data."""
        data = self._folder / "data"
        settings = ("listen_addresses=", f"unix_socket_directories={self._folder}", "fsync=off", "max_connections=200")
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(
                [self._programs / "postgres", "-D", data, *(part for each in settings for part in ("-c", each))],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                **self._options,
            )
        while True:
            try:
                psycopg.connect(self._address("postgres")).close()
            except psycopg.OperationalError:
                assert self._server.poll() is None, self._log.read_text()
                time.sleep(0.05)
            else:
                return

    def stop(self, sig: signal.Signals) -> None:
        """Stop the server by a signal, and wait for its end (postgres(1): SIGINT for fast, SIGQUIT for immediate
        shutdown).
        """
        self._server.send_signal(sig)
        self._server.wait()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Suspend all of the server's processes within the block."""
        pids = [self._server.pid, *descendants(self._server.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            let_go(pids)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Fast shutdown (postgres(1)) ends connections instead of waiting for them.
        self.stop(signal.SIGINT)
        shutil.rmtree(self._folder)

    def _address(self, database: str) -> str:
        return f"host={self._folder} user=tests dbname={database}"

    def new_database(self, options: str = "") -> str:
        """Make an empty database, with these options of CREATE DATABASE, and return its URL."""
        self._count += 1
        name = f"test{self._count}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")
        return f"postgresql+psycopg://tests@/{name}?host={self._folder}"


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
