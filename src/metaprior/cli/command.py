"""What a command is, and which ones there are.

The library's own commands are the modules of `commands/`. Another package can add a command by an entry point that
names a module of the same form:

    [project.entry-points."metaprior.commands"]
    reproduce = "metaprior_reproduction.commands.reproduce"
"""

import argparse
import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Protocol, cast

from metaprior.cli import commands
from metaprior.cli.result import Result, UsageError
from metaprior.user_warnings import warn_user

#: The entry-point group of commands that other packages add.
GROUP = "metaprior.commands"
#: Commands of the second package of the repository.
OF_THE_REPRODUCTION = ("reproduce", "report")


class Command(Protocol):
    """The names that a command's module defines."""

    #: One line for the list of commands, without a capital letter or a full stop.
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
    added = {entry.name: _loaded(entry) for entry in entry_points(group=GROUP) if entry.name not in own}
    modules |= {name: module for name, module in added.items() if module is not None}
    return {name.replace("_", "-"): cast("Command", module) for name, module in modules.items()}


def _loaded(entry: EntryPoint) -> ModuleType | None:
    """Return the module of an entry point, or None with a warning if it cannot be imported."""
    try:
        return entry.load()
    except ImportError as error:
        warn_user(
            f"the command '{entry.name}' is not available: {entry.value} cannot be imported ({error}); reinstall its "
            "package."
        )
        return None


def check_installed(name: str) -> None:
    """Raise an error that says how to install the reproduction if a missing command belongs to it."""
    if name in OF_THE_REPRODUCTION and name not in all_commands():
        raise UsageError(
            f"'{name}' is not installed: it is in the package metaprior-reproduction, the folder 'reproduction' of the "
            "repository. Run 'pip install -e reproduction' in a clone of the repository"
        )
