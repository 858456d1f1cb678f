"""How much a fitted model depends on each input column: the lengthscales of its input kernel, by name."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metaprior.kernels import Kernel, lengthscales
from metaprior.model import Model
from metaprior.weights import MetaGP, Mixed


class Relevance(NamedTuple):
    """The lengthscale of a part of the input kernel along a column.

    Attributes
    ----------
    column : str
        The name of the column; "x0", "x1", ... where the model was fitted to an array.
    part : str
        The part of the kernel: its class, and a number from the second of a class on.
    lengthscale : float
        The distance over which the function changes, in the units of the column.
    relative : float
        The same in standard deviations of the column: these can be compared between columns. Less than about 1 is a
        column that matters; much more is one on which the function hardly depends.
    """

    column: str
    part: str
    lengthscale: float
    relative: float


def relevance(model: Any) -> list[Relevance]:
    """Return the lengthscales of a fitted model's input kernel, one entry for each of its parts and columns.

    Parameters
    ----------
    model : estimator
        A fitted estimator with an input kernel: `MetaGPRegressor`, `MetaGPClassifier`, `baselines.ExactGPRegressor`.

    Returns
    -------
    list of Relevance
        `pandas.DataFrame(relevance(model))` is a table of it.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import MetaGPRegressor, relevance
    >>> x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    >>> model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(x, np.sin(3 * x[:, 0]))
    >>> {each.column: each.relative for each in relevance(model)}["x1"] > 1
    True
    """
    check_is_fitted(model)
    kernel, names = _input_kernel(model), column_names(model)
    scale = np.asarray(model.x_scale_)
    return [
        Relevance(names[column], part, length, length / float(scale[column]))
        for part, column, length in lengthscales(kernel.with_columns(names), len(names))
    ]


def column_names(model: Any) -> list[str]:
    """Return the names of the columns that a model was fitted to; "x0", "x1", ... where they had none."""
    names = vars(model).get("feature_names_in_")
    return [f"x{place}" for place in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def num_projections(model: Any) -> int:
    """Return how many learned projections of the columns the input kernel of a fitted model sees; 0: the columns."""
    fitted = vars(model).get("model_")
    weights = fitted.weights if isinstance(fitted, Model) else None
    parts = weights.parts if isinstance(weights, Mixed) else (weights,)
    maps = [part.input_map.means[-1] for part in parts if isinstance(part, MetaGP) and part.input_map.means]
    return maps[0].shape[0] if maps else 0


def _input_kernel(model: Any) -> Kernel:
    """Return the input kernel in the units of the data, or raise an error if it has none on the columns."""
    kernel = vars(model).get("input_kernel_", vars(model).get("kernel_"))
    if not isinstance(kernel, Kernel):
        found = "several, one per target" if isinstance(kernel, tuple) else "none"
        raise ValueError(
            f"relevance: expected a model with one input kernel, such as MetaGPRegressor(input_kernel='rbf'); this "
            f"{type(model).__name__} has {found}."
        )
    if num_projections(model):
        raise ValueError("relevance: expected a kernel on the columns themselves; this one sees a projection of them.")
    return kernel
