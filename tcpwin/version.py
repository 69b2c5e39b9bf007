"""The installed version of tcpwin."""

from importlib.metadata import version

__version__ = version("tcpwin")
