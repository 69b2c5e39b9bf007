"""Everything that a worker will need, imported before it is one: forked from here, it begins at once."""

import numpy as np
import polars

from tcpwin.findings import all_rules
from tcpwin_web.jobs import work

PRELOADED = (np, polars, work, all_rules())
"""Rules are found and loaded when they are first asked for: that is now."""
