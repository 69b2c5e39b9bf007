"""Analyses in words and numbers: the content of every output, whatever its form.

In: verdicts, findings, connections, captures. Out: frozen values of text with units. It judges nothing and has no
layout. Import each name from its own module.
"""
