"""The standalone report: what limited the connections of a capture, as one file to keep and to send.

In: an analysis. Out: HTML that needs no network, PDF, JSON or Markdown. Its size is bounded, whatever the capture.
"""

from tcpwin.report.standalone.report import CONNECTIONS_SHOWN, FORMS, THEMES, Report, form_of

__all__ = ["CONNECTIONS_SHOWN", "FORMS", "THEMES", "Report", "form_of"]
