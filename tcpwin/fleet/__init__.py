"""Many captures as one data set: measured in parallel, stored as Parquet, queried with SQL."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
