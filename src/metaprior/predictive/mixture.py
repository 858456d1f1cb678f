"""Several models in one answer: the mixture of their predictive distributions.

A variational posterior sits in one of many modes; fits from different seeds sit in different ones, and their mixture
knows more of what it does not know. Models with different kernels may be mixed as well: each draw counts the same.
"""

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from metaprior.likelihoods import Likelihood
from metaprior.predictive.draws import FunctionDraws, Predictive
from metaprior.predictive.integrated import GaussianMixture, IntegratedDraws


class JoinedDraws(FunctionDraws):
    """The draws of several models at the same rows, one model's after the other's."""

    def __init__(self, parts: Sequence[FunctionDraws]) -> None:
        """Take draws at the same rows; nothing is computed yet."""
        self.parts, self.x = list(parts), parts[0].x
        self.num_draws, self.whole = sum(part.num_draws for part in parts), parts[0].whole

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of every draw, [S, 1, ...]."""
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *[part.likelihood for part in self.parts])

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and everybody's draws."""
        for together in zip(*[part.chunks() for part in self.parts], strict=True):
            yield together[0][0], np.concatenate([f for _, f in together])

    def coherent(self) -> "JoinedDraws":
        """Return everybody's functions, each drawn jointly over the rows."""
        return JoinedDraws([part.coherent() for part in self.parts])


class JoinedPosteriors(JoinedDraws):
    """The same for models with an integrated output layer and Gaussian noise."""

    parts: list[IntegratedDraws]  # type: ignore[assignment]

    def components(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield rows and everybody's means, variances and noise."""
        for together in zip(*[part.components() for part in self.parts], strict=True):
            rows, *_ = together[0]
            yield rows, *(np.concatenate([own[k] for own in together]) for k in (1, 2, 3))

    def joint_components(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the same with the covariance of the outputs in place of their variances."""
        for together in zip(*[part.joint_components() for part in self.parts], strict=True):
            rows, *_ = together[0]
            yield rows, *(np.concatenate([own[k] for own in together]) for k in (1, 2, 3))


def mixed(predictives: Sequence[Predictive]) -> Predictive:
    """Return the mixture of predictive distributions at the same inputs, each function draw with the same weight.

    Parameters
    ----------
    predictives : sequence of Predictive
        Answers of `predict_distribution` at the same X, from models that were fitted to the same data and mix draws (an
        exact GP does not).

    Returns
    -------
    Predictive

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import MetaGPRegressor
    >>> from metaprior.predictive.mixture import mixed
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.linspace(0, 1, 20) ** 2
    >>> models = [MetaGPRegressor((5,), max_iter=20, random_state=seed).fit(X, y) for seed in range(2)]
    >>> mixed([model.predict_distribution(X) for model in models]).num_draws
    256
    """
    parts = list(predictives)
    if not parts or any(type(part) not in (Predictive, GaussianMixture) for part in parts):
        raise ValueError(
            "mixed: expected predictive distributions that mix function draws, one at least; "
            f"got {[type(part).__name__ for part in parts]}."
        )
    first = parts[0]
    for part in parts[1:]:
        _check_like(first, part)
    join = JoinedPosteriors if type(first) is GaussianMixture else JoinedDraws
    return type(first)(join([p._draws for p in parts]), first._offset, first._scale, flat=first._flat)


def _check_like(first: Predictive, other: Predictive) -> None:
    """Refuse what cannot be mixed with the first."""
    same = {
        "inputs": len(first) == len(other),
        "likelihood": type(first._likelihood) is type(other._likelihood) and type(first) is type(other),
        "units of the targets": np.array_equal(first._offset, other._offset)
        and np.array_equal(first._scale, other._scale),
    }
    wrong = [name for name, holds in same.items() if not holds]
    if wrong:
        raise ValueError(
            f"mixed: expected distributions with the same {', '.join(same)}; the {', '.join(wrong)} differ. Fit all "
            "models to the same data, with one likelihood, and ask them about the same rows."
        )
