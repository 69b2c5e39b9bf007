"""PostgreSQL, read row by row through a cursor; the server's log has the work time of each statement."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from servers.network import PORT, SERVER

ROWS, WORK_S = 80, 0.008
FETCH_ROWS = 1
_DURATION = re.compile(r"duration: ([\d.]+) ms")
_USER = ("unshare", "-U", "--map-user=1000", "--map-group=1000")
"""PostgreSQL refuses to run as root, which the namespace's user appears to be."""


def start(folder: Path) -> list[subprocess.Popen[Any]]:
    """Run a server that logs how long each statement took."""
    data = folder / "data"
    initdb = shutil.which("initdb") or str(max(Path("/usr/lib/postgresql").glob("*/bin/initdb")))
    make = [*_USER, initdb, "-A", "trust", "-U", "asker", "-N", str(data)]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    postgres = str(Path(initdb).resolve().with_name("postgres"))
    settings = {
        "listen_addresses": SERVER,
        "port": PORT,
        "unix_socket_directories": "",
        "fsync": "off",
        "jit": "off",
        "autovacuum": "off",
        "log_min_duration_statement": 0,
    }
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 0.0.0.0/0 trust\n")
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen([*_USER, postgres, "-D", str(data), *options], stderr=log)
    while "ready to accept" not in (folder / "server.log").read_text():
        if server.poll() is not None:
            raise OSError((folder / "server.log").read_text())
        time.sleep(0.02)
    return [server]


def ask(folder: Path) -> dict[str, Any]:
    """Read every row, a fetch at a time, and return what the server's log measured."""
    return fetch(folder, FETCH_ROWS)


def fetch(folder: Path, rows: int) -> dict[str, Any]:
    """Read every row, `rows` to a fetch."""
    import psycopg

    options = {"host": SERVER, "port": PORT, "user": "asker", "dbname": "postgres"}
    with psycopg.connect(**options, sslmode="disable", gssencmode="disable") as connection:
        cursor, began_s = connection.cursor("rows"), time.process_time()
        cursor.execute(f"SELECT g, pg_sleep({WORK_S}) FROM generate_series(1, {ROWS}) g")
        while cursor.fetchmany(rows):
            pass
        # Nothing but the library's own work is between two requests.
        think_s = time.process_time() - began_s
    time.sleep(0.2)
    took_ms = [float(each[1]) for each in _DURATION.finditer((folder / "server.log").read_text())]
    return {"exchanges": len(took_ms), "work_s": sum(took_ms) / 1000, "think_s": think_s}
