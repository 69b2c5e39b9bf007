"""Pages and a JSON API over tcpwin's analysis of captures.

`create_app` takes the captures to show and returns the application; `tcpwin-web` serves it.
"""

from tcpwin_web._app import create_app

__all__ = ["create_app"]
