"""Everything that a worker will need, imported before it is one: forked from here, it begins at once."""

import jinja2
import numpy as np
import polars
import tsdownsample

from tcpwin.findings import all_rules
from tcpwin.report import figures
from tcpwin_web.jobs import answers, detail

PRELOADED = (np, polars, tsdownsample, jinja2, answers, detail, all_rules(), figures.names())
"""Rules and figures are found and loaded when they are first asked for: that is now."""
