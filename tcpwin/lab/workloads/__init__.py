"""Workloads, one module with a `WORKLOAD` each; its docstring is the workload's page."""
