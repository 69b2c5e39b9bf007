"""Analyses in Wireshark: a packet index next to the capture, and the plugin that reads it."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
