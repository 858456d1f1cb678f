"""The command line, for people with a table and no program; a command a file."""

from metaprior.cli.program import main

__all__ = ["main"]
