"""The dashboard: upload captures, analyse them, show them as pages and as an API, share them.

`create_app` creates the application from settings; `tcpwin serve` runs it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpwin_web._app import create_app
    from tcpwin_web.settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    # Worker processes import parts of this package, and need nothing of the application.
    if name == "create_app":
        from tcpwin_web._app import create_app

        return create_app
    if name == "Settings":
        from tcpwin_web.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
