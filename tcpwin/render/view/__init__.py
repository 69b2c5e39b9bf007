"""Analyses in words and numbers: the content of every output, whatever its form.

In: verdicts, findings, connections, captures. Out: frozen values of text with units. It judges nothing and lays nothing
out. Import from the module that has the name.
"""
