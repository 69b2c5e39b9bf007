"""What limited each connection: where its time went, findings by rules, with their evidence, cost and remedy."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
