"""Results are replaced atomically, also while somebody still writes to the previous ones."""

import contextlib
import threading
from pathlib import Path

from fastapi.testclient import TestClient
from web.crafted import API, analysed, settle

from tcpwin_web.jobs.work import put_in_place


def test_results_replace_a_folder_that_is_being_written(tmp_path: Path) -> None:
    place, ended = tmp_path / "place", threading.Event()

    def write() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                (place / "details").mkdir(parents=True, exist_ok=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(200):
            new = tmp_path / "place.new"
            new.mkdir()
            (new / str(number)).touch()
            put_in_place(new, place)
            assert (place / str(number)).exists()
            assert not (place / str(number - 1)).exists()
    finally:
        ended.set()
        writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_an_analysis_begun_again_at_once_is_done_again(client: TestClient, capture: bytes) -> None:
    """While details of the previous analysis are still being prepared."""
    id = analysed(client, capture)
    for _ in range(5):
        assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
        assert settle(client, id)["status"] == "done"
