"""The version of tcpwin."""

__version__ = "0.1.0"
