"""Import everything that workers need before they are forked: a worker then starts at once.

Imports only: threads started here, such as those of polars, would not exist in the forked workers.
"""

import email.parser
import encodings.unicode_escape
import statistics

import jinja2
import numpy as np
import numpy.ma
import polars
import tsdownsample

from tcpwin import figures, version
from tcpwin.analysis import event_columns, segments, table
from tcpwin.figures.drawing import compose, pair
from tcpwin.limits import all_rules, findings, summary, verdict_document
from tcpwin.reference import references
from tcpwin.render.report import document, markdown_form
from tcpwin_web.jobs import answers, detail

PRELOADED = (
    *(np, numpy.ma, polars, tsdownsample, jinja2, statistics, email.parser, encodings.unicode_escape),
    *(event_columns, segments, table, compose, pair, document, markdown_form, answers, detail),
    *(findings, summary, verdict_document, version, all_rules(), figures.names(), references()),
)
"""Load rules, figures and references now, which otherwise happens on first use."""
