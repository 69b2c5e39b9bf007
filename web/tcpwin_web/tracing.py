"""OpenTelemetry spans of requests, analyses and answers, sent to a collector if one is configured.

A span contains no path, query, address, file name or error text: these may hold secrets of share links, or uploaded
data. It is configured by OpenTelemetry's variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, …). Without an
endpoint nothing is imported.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
MODULES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
NAME = "tcpwin"
_SILENT = {"record_exception": False, "set_status_on_exception": False}
INSTALL = "pip install 'tcpwin-web[otel]'"


def is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a collector is configured and not disabled (OpenTelemetry, SDK environment variables)."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_off and any(environment.get(name, "").strip() for name in ENDPOINTS)


def why_not() -> str | None:
    """Return why no traces can be sent although a collector is configured."""
    if not is_wanted():
        return None
    try:
        is_there = all(find_spec(name) for name in MODULES)
    except ModuleNotFoundError:
        is_there = False
    return None if is_there else f"a trace collector is configured ({', '.join(ENDPOINTS)}): {INSTALL}"


class Tracing:
    """The spans of one service; an unwanted one costs only an attribute lookup."""

    def __init__(self) -> None:
        self._provider: Any = None
        self._tracer: Any = None

    def start(self) -> None:
        """Start sending if a collector is configured and the packages are installed."""
        if not is_wanted() or why_not():
            return
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        own = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": NAME}
        self._provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(NAME)

    def stop(self) -> None:
        """Send the remaining spans; blocks until the collector accepts them, or its timeout."""
        if self._provider is not None:
            self._provider.shutdown()
            self._provider = self._tracer = None

    @contextmanager
    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
        """Open a request's span, below the caller's if it sent one (W3C Trace Context); None without a collector."""
        if self._tracer is None:
            yield None
            return
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        parent = TraceContextTextMapPropagator().extract(carrier)
        with self._tracer.start_as_current_span("request", context=parent, kind=SpanKind.SERVER, **_SILENT) as span:
            yield span

    @contextmanager
    def span(self, name: str) -> Iterator[Any]:
        """Open a span of work below the current one; None without a collector."""
        if self._tracer is None:
            yield None
            return
        with self._tracer.start_as_current_span(name, **_SILENT) as span:
            yield span


def set_attributes(span: Any, **facts: str | int) -> None:
    """Set a span's attributes, with dots for double underscores; ignores None."""
    if span is not None:
        span.set_attributes({name.replace("__", "."): value for name, value in facts.items()})


def failed(span: Any) -> None:
    """Mark a span as failed."""
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR)


tracing = Tracing()
"""The spans of this process."""
