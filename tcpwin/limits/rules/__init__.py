"""The rules, each one module with a `RULE`; its docstring is the rule's page."""
