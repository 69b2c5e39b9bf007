"""The dashboard: captures uploaded, analysed, shown as pages and as an API, and shared.

`create_app` takes the settings and returns the application; `tcpwin serve` runs it.
"""

from tcpwin_web._app import create_app
from tcpwin_web.settings import Settings

__all__ = ["Settings", "create_app"]
