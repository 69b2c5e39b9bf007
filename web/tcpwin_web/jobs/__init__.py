"""Long-running work: a queue of analyses in the database, and processes that run them within limits."""

from tcpwin_web.jobs.executor import Executor, JobError, ProcessExecutor

__all__ = ["Executor", "JobError", "ProcessExecutor"]
