"""The service's spans as a collector receives them: requests, analyses and answers, without uploaded data."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from live import HANG_S
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from web.crafted import settle
from web.running import start_server

from tcpwin_web.tracing import is_wanted

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """Listen as an OTLP/HTTP collector; yield the address and the received data."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def spans_of(got: list[bytes]) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return service, span and attributes of each."""
    found = []
    for body in got:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    values = {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
                    found.append((service, span, values))
    return found


def test_requests_and_analyses_are_traced(tmp_path: Path, capture: bytes) -> None:
    with collector() as (endpoint, got), ExitStack() as stack:
        server, address = start_server(stack, tmp_path / "data", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        with httpx2.Client(base_url=address, timeout=HANG_S) as client:
            id = client.post(
                "/api/v1/uploads",
                params={"name": "hush-hush.pcap"},
                content=capture,
                headers={"traceparent": f"00-{TRACE}-{CALLER}-01"},
            ).json()["id"]
            settle(client, id)  # type: ignore[arg-type]
            assert client.get(f"/api/v1/captures/{id}/report", params={"format": "md"}).status_code == 200
            assert client.get("/s/not-a-secret-of-anybody").status_code == 404
        server.terminate()
        server.wait(HANG_S)
    spans = spans_of(got)
    assert {service for service, _, _ in spans} == {"tcpwin"}
    by_name = {span.name: (span, values) for _, span, values in spans}
    upload, values = by_name["POST api.uploads.upload"]
    assert (upload.trace_id.hex(), upload.parent_span_id.hex()) == (TRACE, CALLER)
    assert values["http.response.status_code"] in {201, 202}
    ended = [values for _, span, values in spans if span.name == "analysis"]
    assert {"tcpwin.capture.id": id, "tcpwin.outcome": "done"} in ended
    report, answer = by_name["GET api.reports.show_report"][0], by_name["render_report"][0]
    assert answer.parent_span_id == report.span_id
    everything = b"".join(got)
    assert b"hush-hush" not in everything
    assert b"not-a-secret" not in everything


def test_nothing_is_imported_without_a_collector() -> None:
    code = "import sys, tcpwin_web._app; print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_a_collector_must_be_named(environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(environment) == wanted


@pytest.mark.nightly
def test_missing_packages_are_said_before_anything_is_served(tmp_path: Path) -> None:
    code = (
        "import importlib.abc, sys\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'opentelemetry.sdk':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from tcpwin_web.server import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--port", "0", "--data", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith("pip install 'tcpwin-web[otel]'\n")
