"""Parameters that have another name now: the old one is accepted for one release, with a DeprecationWarning.

scikit-learn reads the parameters of an estimator from the signature of `__init__`. The wrapper keeps that signature, so
`get_params`, `clone` and searches know the new names only.
"""

import functools
import warnings
from typing import Any, TypeVar

from metaprior.io.renamed import PARAMETERS, present_parameters

C = TypeVar("C", bound=type)


def accepts_old_names(cls: C) -> C:
    """Let an estimator be made with the old names of its parameters."""
    init = cls.__init__  # type: ignore[misc]

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **without_old_names(kwargs))

    cls.__init__ = __init__  # type: ignore[misc]
    return cls


def without_old_names(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters under their present names; warn of those that came under an old one."""
    for old in PARAMETERS.keys() & parameters.keys():
        warnings.warn(
            f"{old} is now called {PARAMETERS[old].name}; the old name will go with the next release.",
            DeprecationWarning,
            stacklevel=3,
        )
    return present_parameters(parameters)
