"""Many captures as one data set: measured side by side, kept as Parquet, asked in SQL."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
