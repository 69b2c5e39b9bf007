"""A connection's path and ends as its capture shows them, and the effect of changing them.

In: an analysis with its snapshots. Out: Path, and predictions by the verdict's own cost model. It runs nothing; the lab
does that.
"""

from tcpwin.paths.changes import LIFTABLE, ChangeError, Changes, read_changes
from tcpwin.paths.document import WHATIF_SCHEMA, describe_effect, describe_path, describe_whatif
from tcpwin.paths.effect import Effect, judge_change
from tcpwin.paths.ends import End, ends_of, host_of
from tcpwin.paths.model import PAYLOAD_SHARE
from tcpwin.paths.path import QUEUE, RANDOM, SEND_SHARE, Known, Path, fit_path, path_rows
from tcpwin.paths.prediction import Prediction, Range, WhatIf, WhatIfError, whatif

__all__ = [
    "LIFTABLE",
    "PAYLOAD_SHARE",
    "QUEUE",
    "RANDOM",
    "SEND_SHARE",
    "WHATIF_SCHEMA",
    "ChangeError",
    "Changes",
    "Effect",
    "End",
    "Known",
    "Path",
    "Prediction",
    "Range",
    "WhatIf",
    "WhatIfError",
    "describe_effect",
    "describe_path",
    "describe_whatif",
    "ends_of",
    "fit_path",
    "host_of",
    "judge_change",
    "path_rows",
    "read_changes",
    "whatif",
]
