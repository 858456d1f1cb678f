"""DKL: deep kernel learning. A network learns the features, sparse GPs on them give the outputs; trained together."""

import warnings
from dataclasses import KW_ONLY, dataclass

import numpy as np

from metaprior import kernels
from metaprior.baselines.map import PointEstimator, PointRegressorPart
from metaprior.estimators.base import Problem, VariationalEstimator, expect_auto_or_whole
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.metagp import JITTER
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Fit
from metaprior.kernels import Kernel
from metaprior.networks import Dense
from metaprior.weights import DeepKernel, WeightModel

#: The median distance of features, in lengthscales, beyond which a fit is warned about.
FAR = 4.0


@dataclass(eq=False, repr=False)
class DKLEstimator(PointEstimator, VariationalEstimator):
    """The machinery of both estimators; see `DKLRegressor`."""

    _: KW_ONLY
    kernel: Kernel | str | None = None
    n_inducing: int | str = "auto"

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        kernel = kernels.RBF() if self.kernel is None else kernels.named(self.kernel, "kernel")
        if kernel.unknown_periods():
            raise ValueError("kernel: give the period (in units of the features); no spectrum shows it.")
        return DeepKernel.initial(
            network,
            kernel,
            min(50, len(problem.x)) if self.n_inducing == "auto" else int(self.n_inducing),
            problem.x_unit,
            rng,
            prior_scale=float(self.prior_scale),
            jitter=JITTER[self.dtype],
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        expect_auto_or_whole("n_inducing", self.n_inducing)

    def _keep(self, fit: Fit, seed: int) -> None:
        super()._keep(fit, seed)
        self._warn_of_far_features()

    def _warn_of_far_features(self) -> None:
        """Warn where features lie so many lengthscales apart that nothing is learned between the data."""
        weights: DeepKernel = self.model_.weights  # type: ignore[assignment]
        log = getattr(weights.gps.kernel, "log_lengthscale", None)
        if log is None or not weights.values:
            return
        for points, lengthscale in zip(weights.gps.points, np.exp(np.asarray(log)), strict=True):
            scaled = np.asarray(points, np.float64) / lengthscale
            distance = np.sqrt(np.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1))
            median = float(np.median(distance[np.triu_indices(len(scaled), 1)])) if len(scaled) > 1 else 0.0
            if median > FAR:
                warnings.warn(
                    f"the features of the data lie {median:.1f} lengthscales apart in the median: between them the GP "
                    "knows nothing. A smaller prior_scale, or fewer units in the last hidden layer, would help.",
                    UserWarning,
                    stacklevel=5,
                )
                return


@accepts_old_names
@dataclass(eq=False, repr=False)
class DKLRegressor(PointRegressorPart, DKLEstimator):
    """Regression by sparse variational GPs on the features of a network, trained together.

    The features are those of the last hidden layer; with `hidden_layer_sizes=()` the inputs themselves, which makes it
    a sparse GP. Features of point weights overfit as a plain network does, so some rows are held out. Parameters that
    are not named here are those of `MAPRegressor` and `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        Kernel on the features (None: RBF); every output has its own hyper-parameters.
    n_inducing : int or "auto", default="auto"
        Inducing points an output; "auto" is 50, or as many as there are rows.
    prior_scale : float, default=1.0
        Standard deviation of the Gaussian prior of the network's weights.
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class DKLClassifier(ClassifierPart, DKLEstimator):
    """Classification by sparse variational GPs, one a class, on the features of a network; see `DKLRegressor`."""
