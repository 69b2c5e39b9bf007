"""Tools by which agents query captures (Model Context Protocol): small answers, each with the frames that prove it.

In: a folder of captures. Out: a server whose tools read this folder and write nothing unless given an output folder.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
