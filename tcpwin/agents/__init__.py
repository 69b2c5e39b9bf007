"""Questions of agents about captures, by the Model Context Protocol: small answers, each with the frames that prove it.

In: a folder of captures. Out: a server of tools that reads this folder and, unless it is told where to, writes nothing.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
