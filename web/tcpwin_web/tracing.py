"""Spans of OpenTelemetry, sent to a collector where one is named: requests by what answers them, analyses, answers.

A span holds no path, query, address, name or text of an error: these may hold secrets of share links, and what people
uploaded. Settings are those of OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, …). Without an endpoint
nothing is imported.
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
    """Whether a collector is named, and not switched off (OpenTelemetry, SDK environment variables)."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_off and any(environment.get(name, "").strip() for name in ENDPOINTS)


def why_not() -> str | None:
    """Why nothing can be sent, where a collector is named."""
    if not is_wanted():
        return None
    try:
        is_there = all(find_spec(name) for name in MODULES)
    except ModuleNotFoundError:
        is_there = False
    return None if is_there else f"a collector of traces is named ({', '.join(ENDPOINTS)}): {INSTALL}"


class Tracing:
    """Spans of one service; those of one that is not wanted cost a look at an attribute."""

    def __init__(self) -> None:
        self._provider: Any = None
        self._tracer: Any = None

    def start(self) -> None:
        """Begin to send, where a collector is named, and the packages are there."""
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
        """Send what is left; blocks as long as the collector takes, or its time limit."""
        if self._provider is not None:
            self._provider.shutdown()
            self._provider = self._tracer = None

    @contextmanager
    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
        """A request's span, below the caller's where it names one (W3C Trace Context); None without a collector."""
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
        """A span of work, below the one that is under way; None without a collector."""
        if self._tracer is None:
            yield None
            return
        with self._tracer.start_as_current_span(name, **_SILENT) as span:
            yield span


def told(span: Any, **facts: str | int) -> None:
    """Write attributes into a span, dots in place of double underscores; nothing where there is none."""
    if span is not None:
        span.set_attributes({name.replace("__", "."): value for name, value in facts.items()})


def failed(span: Any) -> None:
    """Mark a span as one of an error."""
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR)


tracing = Tracing()
"""Of this process, as its metrics are."""
