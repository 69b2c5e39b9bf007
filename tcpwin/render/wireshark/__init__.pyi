from tcpwin.render.wireshark.packet_index import IndexedCapture as IndexedCapture
from tcpwin.render.wireshark.packet_index import read_indexed as read_indexed
from tcpwin.render.wireshark.packet_index import write_index as write_index
from tcpwin.render.wireshark.plugin import ENDING as ENDING
from tcpwin.render.wireshark.plugin import default_folder as default_folder
from tcpwin.render.wireshark.plugin import make_known as make_known
from tcpwin.render.wireshark.plugin import plugin_text as plugin_text
