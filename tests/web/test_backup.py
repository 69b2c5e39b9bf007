"""Backup and restore, from each database to the other, while the service runs; and the retention policy."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fastapi.testclient import TestClient
from live import until
from web.conftest import MakeClient
from web.crafted import API, analysed, many_connections
from web.postgres import Postgres
from web.test_tokens import OWNER, bearer

from tcpwin_web import Settings, create_app
from tcpwin_web.data_commands import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def ok(*arguments: object) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def refused(*arguments: object) -> str:
    done = run(*arguments)
    assert done.exit_code == 3, done.output
    assert "Traceback" not in done.output
    return done.output


def place(folder: Path, url: str | None) -> list[object]:
    return ["--data", folder, *([] if url is None else ["--database-url", url])]


def everything(client: TestClient, id: str, link: str) -> dict[str, Any]:
    """What people see of a capture, its notes, its link and the tokens."""
    return {
        path: client.get(path).json()
        for path in (
            f"{API}/captures/{id}",
            f"{API}/captures/{id}/analysis",
            f"{API}/captures/{id}/connections/0/events",
            f"{API}/captures/{id}/notes",
            f"{API}/tokens",
            f"{API}{link}",
            f"{API}/search?address=192.0.2.1",
        )
    }


@pytest.mark.parametrize(
    "kinds",
    [("sqlite", "postgres"), pytest.param(("postgres", "sqlite"), marks=pytest.mark.nightly)],
    ids="->".join,
)
def test_a_backup_is_restored_to_the_other_database(
    make_client: MakeClient, postgres: Postgres, tmp_path: Path, capture: bytes, kinds: tuple[str, str]
) -> None:
    """While the service runs: the backup contains what was there."""
    urls = [None if kind == "sqlite" else postgres.new_database() for kind in kinds]
    old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "backup.tar"
    settings: dict[str, Any] = {"token": OWNER, "headers": bearer(OWNER)}
    first = make_client(data=old, database_url=urls[0], **settings)
    id = analysed(first, capture)
    gone = analysed(first, many_connections(3))
    first.post(f"{API}/captures/{id}/notes", json={"text": "before \u2192 after"})
    token = first.post(f"{API}/tokens", json={"name": "x"}).json()["secret"]
    link = first.post(f"{API}/captures/{id}/shares", json={}).json()["path"]
    before = everything(first, id, link)
    # Its file is lost while the backup is made.
    sha256 = first.get(f"{API}/captures/{gone}").json()["files"][0]["sha256"]
    (old / "files" / sha256[:2] / sha256).unlink()
    assert "1 capture, 1 file, " in ok("backup", out, "--keys", *place(old, urls[0]))
    assert out.stat().st_mode & 0o777 == 0o600
    assert "File exists" in refused("backup", out, *place(old, urls[0]))
    assert "is in use" in refused("restore", out, *place(old, urls[0]))
    assert "1 capture, 1 file, " in ok("restore", out, *place(new, urls[1]))
    second = make_client(data=new, database_url=urls[1], **settings)
    assert everything(second, id, link) == before
    assert second.get(f"{API}/captures/{gone}").status_code == 404
    assert second.get(f"{API}/captures", headers=bearer(token)).status_code == 200
    # New rows do not collide with restored ones.
    assert analysed(second, many_connections(2))


def test_what_cannot_be_restored_is_refused(make_client: MakeClient, tmp_path: Path, capture: bytes) -> None:
    client = make_client(data=tmp_path / "old", database_url=None)
    analysed(client, capture)
    out = tmp_path / "backup.tar"
    ok("backup", out, *place(tmp_path / "old", None))
    with tarfile.open(out) as archive:
        names = archive.getnames()
        members = {name: archive.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    assert "keys/addresses" not in names

    def damaged(number: int, changes: dict[str, bytes | None]) -> str:
        path = tmp_path / f"{number}.tar"
        with tarfile.open(path, "w") as archive:
            for name, content in {**members, **changes}.items():
                if content is not None:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
        return refused("restore", path, *place(tmp_path / f"new{number}", None))

    file = next(name for name in names if name.startswith("files/"))
    assert "has another content" in damaged(1, {file: b"x"})
    assert "is incomplete" in damaged(2, {"manifest.json": None})
    assert "lacks rows of captures" in damaged(3, {"rows/captures.jsonl": None})
    manifest = json.loads(members["manifest.json"])
    assert "another version" in damaged(4, {"manifest.json": json.dumps({**manifest, "revision": "0"}).encode()})
    damaged(5, {"results/../../escaped": b"x", "../escaped": b"x", "files/aa/../../x": b"x"})
    assert not list(tmp_path.rglob("escaped"))
    (tmp_path / "text.tar").write_text("nothing")
    assert "not a backup" in refused("restore", tmp_path / "text.tar", *place(tmp_path / "new6", None))
    ok("restore", out, *place(tmp_path / "new7", None))
    assert "holds captures already" in refused("restore", out, *place(tmp_path / "new7", None))


def test_retention_by_age_and_size_with_pinned_captures(database_url: str | None, tmp_path: Path) -> None:
    """The list names what the service deletes afterwards, and nothing else."""

    def started(**settings: Any) -> TestClient:
        given = {"data": tmp_path / "data", "workers": 2, "database_url": database_url, **settings}
        return TestClient(create_app(Settings(**given)), base_url="http://localhost")

    def listed(most: int = 0) -> list[tuple[str, str]]:
        arguments = [str(each) for each in ("expired", *place(tmp_path / "data", database_url))]
        done = CliRunner().invoke(main, arguments, env={"TCPWIN_RETENTION_BYTES": str(most)})
        assert done.exit_code == 0, done.output
        return [(line.split()[0], line.split()[2]) for line in done.output.splitlines()]

    with started() as client:
        ids = [analysed(client, many_connections(100 + number), f"{number}.pcap") for number in range(5)]
        client.patch(f"{API}/captures/{ids[1]}", json={"tags": ["pinned"]})
        sizes = [client.get(f"{API}/captures/{id}").json()["files"][0]["size_bytes"] for id in ids]
        most = sizes[1] + sizes[3] + sizes[4]
        assert (listed(), listed(most)) == ([], [(ids[0], "size"), (ids[2], "size")])
    with started(retention_days=1e-9, retention_bytes=most) as client:

        def kept() -> set[str]:
            return {each["id"] for each in client.get(f"{API}/captures").json()["captures"]}

        # It sweeps when it starts.
        until(lambda: kept() == {ids[1], ids[3], ids[4]})
        young = analysed(client, many_connections(50), "young.pcap")
        assert listed() == [(young, "age")]
        assert client.portal is not None
        assert client.portal.call(client.app.state.service.captures.sweep) == 1  # type: ignore[attr-defined]
        assert kept() == {ids[1], ids[3], ids[4]}
