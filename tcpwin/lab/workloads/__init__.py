"""The workloads, each one module with a `WORKLOAD`; its docstring is the workload's page."""
