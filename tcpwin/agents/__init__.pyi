from tcpwin.agents.folder import Folder as Folder
from tcpwin.agents.server import serve as serve
