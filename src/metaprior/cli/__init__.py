"""The command line: fit and use models from the shell, without writing Python. There is one file per command."""

from metaprior.cli.program import main

__all__ = ["main"]
