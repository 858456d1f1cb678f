"""A fitted network as a model of BoTorch: an ensemble whose members are functions drawn from the posterior.

The members are fixed when the model is made, so a draw is the same function in every call: it is coherent over the
points of a batch and over the steps of an optimiser. PyTorch's automatic differentiation meets JAX's in one place: the
gradient of the members' values is `jax.vjp` of the same functions.
"""

from typing import Any

import numpy as np
import torch
from botorch.models.ensemble import EnsembleModel
from sklearn.utils.validation import check_is_fitted

from metaprior.estimators.differentiable import FixedFunctions


class _Members(torch.autograd.Function):
    """The members' values at rows, for PyTorch: values [S, N, K] of rows [N, D], and their gradient."""

    @staticmethod
    def forward(context: Any, rows: torch.Tensor, functions: FixedFunctions) -> torch.Tensor:
        """Return the values, in the type and on the device of the rows."""
        context.functions = functions
        context.save_for_backward(rows)
        return torch.as_tensor(functions.values(_array(rows))).to(rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context: Any, cotangents: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient of sum(cotangents * values)."""
        (rows,) = context.saved_tensors
        gradient = context.functions.pullback(_array(rows), _array(cotangents))
        return torch.as_tensor(gradient).to(rows), None


class BoTorchModel(EnsembleModel):
    """A fitted regressor as a BoTorch model, for `optimize_acqf` and Monte-Carlo acquisition functions.

    Its posterior is an `EnsemblePosterior` of functions of x without observation noise, in the units of the data.
    BoTorch maximises, so fit the regressor to values of which more is better.

    Parameters
    ----------
    estimator : regressor
        A fitted regressor of this library that is a network: all are, but the exact GP. It is not changed, and later
        fits of it do not change this model.
    num_draws : int, default=128
        The number of members. What an acquisition function says is exact up to that many draws.
    random_state : int, default=0
        Decides which functions are drawn.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from metaprior import MetaGPRegressor
    >>> from metaprior.bridges import BoTorchModel
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> surrogate = MetaGPRegressor((5,), max_iter=20, random_state=0).fit(X, np.sin(3 * X[:, 0]))
    >>> model = BoTorchModel(surrogate, num_draws=16)
    >>> model.posterior(torch.zeros(3, 1, dtype=torch.double)).mean.shape
    torch.Size([3, 1])
    """

    def __init__(self, estimator: Any, num_draws: int = 128, random_state: int = 0) -> None:
        check_is_fitted(estimator)
        super().__init__()
        self.functions = FixedFunctions(estimator, num_draws, random_state)
        self._num_outputs = self.functions.num_outputs

    @property
    def batch_shape(self) -> torch.Size:
        """One model, and no batch of models."""
        return torch.Size([])

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return the members' values, batch_shape x s x n x m, at points batch_shape x n x d."""
        rows = X.reshape(-1, X.shape[-1])
        values = _Members.apply(rows, self.functions)
        by_batch = values.reshape(len(values), *X.shape[:-1], self.num_outputs)
        return torch.movedim(by_batch, 0, -3)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float64)
