"""Parameters that have another name now: the old one is accepted for one release, with a DeprecationWarning.

scikit-learn reads the parameters of an estimator from the signature of `__init__`. The wrapper keeps that signature, so
`get_params`, `clone` and searches know the new names only.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from metaprior.io.renamed import PARAMETERS, Renamed, present_parameters
from metaprior.user_warnings import warn_user

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")


def accepts_old_names(cls: C) -> C:
    """Let an estimator be made with the old names of its parameters."""
    cls.__init__ = accepts_old_keywords(PARAMETERS)(cls.__init__)  # type: ignore[misc]
    return cls


def accepts_old_keywords(table: dict[str, Renamed]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function be called with the old names of its keywords, which a table has."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> R:
            return function(*args, **without_old_names(kwargs, table))

        return call

    return decorate


def without_old_names(parameters: dict[str, Any], table: dict[str, Renamed] = PARAMETERS) -> dict[str, Any]:
    """Return parameters under their present names; warn of those that came under an old one."""
    for old in table.keys() & parameters.keys():
        warn_user(
            f"{old} is now called {table[old].name}; the old name will go with the next release.", DeprecationWarning
        )
    return present_parameters(parameters, table)
