"""Work that takes long: rows of wanted analyses, and processes that do them within limits."""

from tcpwin_web.jobs.executor import Executor, JobError, ProcessExecutor

__all__ = ["Executor", "JobError", "ProcessExecutor"]
