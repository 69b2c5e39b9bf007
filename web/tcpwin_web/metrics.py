"""Counters and times of the service, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

REQUESTS = Counter("tcpwin_requests", "Requests answered.", ["method", "endpoint", "status"], registry=REGISTRY)
REQUEST_SECONDS = Histogram("tcpwin_request_seconds", "Time until the response began.", ["endpoint"], registry=REGISTRY)
UPLOADED_BYTES = Counter("tcpwin_uploaded_bytes", "Bytes received in uploads.", registry=REGISTRY)
ANALYSES = Counter("tcpwin_analyses", "Analyses, by outcome.", ["status"], registry=REGISTRY)
ANALYSIS_SECONDS = Histogram(
    "tcpwin_analysis_seconds",
    "Time of an analysis.",
    buckets=(0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000),
    registry=REGISTRY,
)
WAITING = Gauge("tcpwin_waiting", "Requests waiting for a slot.", ["kind"], registry=REGISTRY)
TAKEN = Gauge("tcpwin_taken", "Slots in use.", ["kind"], registry=REGISTRY)
FREE_BYTES = Gauge("tcpwin_free_bytes", "Free space on the disk of the data folder.", registry=REGISTRY)
