"""Two captures of the same traffic at two points: the fate of each packet in between.

Independent of the analysis of one capture: the engine reads both in step, and these types hold the result.
"""

from tcpwin.pairing.clock import Clock, ClockPiece
from tcpwin.pairing.connection import Change, Delay, PairedConnection, PairedDirection, Resent
from tcpwin.pairing.document import SCHEMA, describe
from tcpwin.pairing.judging import JudgedConnection, JudgedDirection, View
from tcpwin.pairing.measure import pair
from tcpwin.pairing.pairing import Pairing
from tcpwin.pairing.unpaired import Proxy, UnpairedConnection

__all__ = [
    "SCHEMA",
    "Change",
    "Clock",
    "ClockPiece",
    "Delay",
    "JudgedConnection",
    "JudgedDirection",
    "PairedConnection",
    "PairedDirection",
    "Pairing",
    "Proxy",
    "Resent",
    "UnpairedConnection",
    "View",
    "describe",
    "pair",
]
