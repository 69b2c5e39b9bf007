"""Stored data: rows in a database, files and results in one data folder."""

from tcpwin_web.storage.database import Database
from tcpwin_web.storage.files import DataFolder

__all__ = ["DataFolder", "Database"]
