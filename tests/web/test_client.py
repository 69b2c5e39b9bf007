"""The library's client against a running service."""

import io
from pathlib import Path

import polars
import pytest
from web.running import Host

from tcpwin.client import Client, ServiceError

TOKEN = "correct horse battery"


def test_from_upload_to_delete(host: Host, tmp_path: Path, capture: bytes) -> None:
    (tmp_path / "zero window.pcap").write_bytes(capture)
    address = host(token=TOKEN)
    with Client(address) as stranger, pytest.raises(ServiceError) as refused:
        list(stranger.captures())
    assert refused.value.status == 401
    with Client(address, token=TOKEN) as client:
        entry = client.wait(client.upload(tmp_path / "zero window.pcap", tags=["slow"])["id"])
        id = entry["id"]
        assert (entry["name"], entry["connections"], entry["tags"]) == ("zero window.pcap", 1, ["slow"])
        assert [each["id"] for each in client.captures(tag="slow")] == [id]
        assert client.analysis(id)["capture"]["packets"] == 10
        assert client.findings(id) == client.findings(id, limit=1000)
        (row,) = client.connections(id, where=["a_to_b.zero_window_ns>0"])
        assert row["a_to_b.zero_window_ns"] == 2_500_000_000
        assert client.connections(id, where=["verdict.limit=sender_application"]) == [row]
        assert client.connections(id, where=["verdict.limit=path_loss"]) == []
        assert client.connection(id, 0)["a_to_b"]["payload_bytes"] == 2000
        window = polars.read_ipc_stream(io.BytesIO(client.series(id, 0, "receive_window")))
        assert set(window["last"]) == {0, 2000}
        with pytest.raises(ServiceError, match="unknown series") as missing:
            client.series(id, 0, "nothing")
        assert (missing.value.status, missing.value.problem["status"]) == (422, 422)
        client.delete(id)
        assert list(client.captures()) == []
        (tmp_path / "nonsense.pcap").write_bytes(b"nonsense")
        with pytest.raises(ServiceError, match="not a pcap or pcapng file"):
            client.upload(tmp_path / "nonsense.pcap")
        assert list(client.captures()) == []


def test_where_no_service_is() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(ServiceError, match="cannot be reached"):
        list(client.captures())
    with pytest.raises(ValueError, match="invalid service address"):
        Client("127.0.0.1:8642")
