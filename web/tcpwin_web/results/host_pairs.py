"""Group a capture's connections by hosts, port and limit, for searches."""

from pathlib import Path
from typing import Any

import polars

from tcpwin_web.results import layout

MOST_PAIRS = 2000
"""Maximum number of rows per capture: those that lost the most time, then those with the most data."""


def group_by_hosts(folder: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the rows, and their number including those beyond `MOST_PAIRS`.

    The server is the host that answered the handshake, or the end with the lower port if it was not captured.
    """
    a_serves = polars.col("handshake_rtt_ns").is_null() & (polars.col("a_port") < polars.col("b_port"))
    data_bytes = polars.sum_horizontal(
        *(
            polars.max_horizontal(polars.col(f"{side}.acked_bytes").fill_null(0), f"{side}.payload_bytes")
            for side in ("a_to_b", "b_to_a")
        )
    )
    ends = {
        "client": polars.when(a_serves).then("b_address").otherwise("a_address"),
        "server": polars.when(a_serves).then("a_address").otherwise("b_address"),
        "port": polars.when(a_serves).then("a_port").otherwise("b_port").cast(polars.Int64),
        "limited_by": polars.col("verdict.limit"),
    }
    rows = polars.scan_parquet(folder / layout.CONNECTIONS).select(
        *(expression.alias(name) for name, expression in ends.items()),
        polars.col("id").cast(polars.Int64),
        polars.col("start_ns", "duration_ns", "path_rtt_ns").cast(polars.Int64),
        polars.col("goodput_bps").cast(polars.Float64),
        polars.col("verdict.is_problem").cast(polars.Int64).alias("is_problem"),
        polars.col("verdict.lost_ns").cast(polars.Int64).fill_null(0).alias("lost_ns"),
        data_bytes.cast(polars.Int64).alias("data_bytes"),
    )
    largest = polars.col("goodput_bps").sort_by("data_bytes", descending=True).first()
    grouped = (
        rows.group_by(*ends)
        .agg(
            polars.len().cast(polars.Int64).alias("connections"),
            polars.col("is_problem").sum().alias("problems"),
            polars.col("lost_ns", "duration_ns", "data_bytes").sum(),
            largest.round(0).cast(polars.Int64).alias("rate_bps"),
            polars.col("path_rtt_ns").min().alias("rtt_ns"),
            polars.col("start_ns").min(),
            polars.col("id").sort_by("lost_ns", "data_bytes", descending=True).first().alias("worst"),
        )
        .sort(["lost_ns", "data_bytes", *ends], descending=[True, True, *(False for _ in ends)])
        .collect()
    )
    return grouped.head(MOST_PAIRS).to_dicts(), grouped.height
