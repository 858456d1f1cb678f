"""What a command is, and which ones there are.

The library's own commands are the modules of `commands/`. Another package adds a command by an entry point whose value
is a module of the same form:

    [project.entry-points."metaprior.commands"]
    reproduce = "metaprior_reproduction.commands.reproduce"
"""

import argparse
import importlib
import pkgutil
from importlib.metadata import entry_points
from typing import Protocol, cast

from metaprior.cli import commands
from metaprior.cli.result import Result, UsageError

#: The entry-point group of commands that other packages add.
GROUP = "metaprior.commands"
#: Commands of the second package of the repository.
OF_THE_REPRODUCTION = ("reproduce", "report")


class Command(Protocol):
    """A module that is a command."""

    #: One line for the list of commands, without a capital letter and a full stop.
    SUMMARY: str
    #: Indented lines for the end of the command's help.
    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments and options."""

    def run(self, args: argparse.Namespace) -> Result:
        """Do the work and return what was found."""


def all_commands() -> dict[str, Command]:
    """Return the commands by name, the library's own first."""
    own = {found.name: f"{commands.__name__}.{found.name}" for found in pkgutil.iter_modules(commands.__path__)}
    modules = {name: importlib.import_module(path) for name, path in own.items()}
    added = {entry.name: entry.load() for entry in entry_points(group=GROUP) if entry.name not in own}
    return {name.replace("_", "-"): cast("Command", module) for name, module in {**modules, **added}.items()}


def check_installed(name: str) -> None:
    """Say how to install a command of the reproduction that is asked for and not there."""
    if name in OF_THE_REPRODUCTION and name not in all_commands():
        raise UsageError(
            f"'{name}' is not installed: it comes with the package metaprior-reproduction, which is the folder "
            "'reproduction' of the repository. Run 'pip install -e reproduction' in a clone of it"
        )
