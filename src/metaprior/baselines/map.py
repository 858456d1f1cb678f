"""MAP: a plain network, its weights a point estimate under a Gaussian prior. What everybody starts from."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from metaprior.estimators.base import Problem, TrainedEstimator
from metaprior.estimators.checks import expect, is_number
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.regressor import RegressorPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Recipe
from metaprior.networks import Dense
from metaprior.weights import Point, WeightModel

#: The spread, under the prior of "auto", of what a first unit sums up of a few standardised inputs. With 1, the weights
#: of a function that bends often in its one input are so improbable that its signal is taken for noise.
SPREAD = 3.0


@dataclass(eq=False, repr=False)
class NormalPriorEstimator(TrainedEstimator):
    """A network whose weights have the prior N(0, prior_scale^2)."""

    _: KW_ONLY
    prior_scale: float | str = 1.0
    learning_rate_init: float = 0.01

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_prior_scale()

    def _check_prior_scale(self) -> None:
        expect("prior_scale", self.prior_scale, "a positive number", is_positive(self.prior_scale))


@dataclass(eq=False, repr=False)
class PointEstimator(NormalPriorEstimator):
    """A network whose weights are points: nothing is drawn, so the recipe has nothing to let in slowly.

    Nothing but a wide prior keeps such a network from the noise, and where it can go through all targets the joint
    maximum over weights and noise level is degenerate. So by default some rows are held out, and the weights are those
    that do best on them. The rate is small: on a noisy table the best weights are met within some hundred steps.
    """

    _: KW_ONLY
    learning_rate_init: float = 0.003
    early_stopping: bool | str = "auto"
    n_iter_no_change: int = 10

    def _recipe(self, num_rows: int) -> Recipe:
        return super()._recipe(num_rows)._replace(normals_start=-1.0, normals_full=0.0, kl_starts=-1.0, kl_full=0.0)


@dataclass(eq=False, repr=False)
class PointRegressorPart(RegressorPart):
    """Targets of a network with point weights: the noise level is free, and starts where nothing is explained yet.

    From a small start it needs some hundred steps to rise, in which a network learns the noise of a small table. Only
    where it is to be held (`noise_hold`) does it start small.
    """

    @property
    def _noise_hold(self) -> float:
        return 0.0

    def _start_noise(self, X: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return np.ones(targets.shape[1]) if self._hold() == 0 else super()._start_noise(X, targets)


@dataclass(eq=False, repr=False)
class MAPEstimator(PointEstimator):
    """The machinery of both estimators; see `MAPRegressor`."""

    _: KW_ONLY
    prior_scale: float | str = "auto"

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        return Point.initial(network, rng, self._scale_of_prior(problem.x.shape[1]))

    def _scale_of_prior(self, num_features: int) -> float:
        return float(max(1.0, SPREAD / num_features**0.5) if self.prior_scale == "auto" else self.prior_scale)

    def _check_prior_scale(self) -> None:
        scale, what = self.prior_scale, "'auto' or a positive number"
        expect("prior_scale", scale, what, is_positive(scale) or (isinstance(scale, str) and scale == "auto"))


def is_positive(value: object) -> bool:
    """Return whether a value is a positive number."""
    return is_number(value) and value > 0  # type: ignore[operator]


@accepts_old_names
@dataclass(eq=False, repr=False)
class MAPRegressor(PointRegressorPart, MAPEstimator):
    """Regression by a network with point weights under a Gaussian prior.

    Its uncertainty is the observation noise alone: epistemic variance and mutual information are 0. Parameters that
    are not named here are those of `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    prior_scale : float or "auto", default="auto"
        Standard deviation of the prior of every weight, inputs and targets being standardised; "auto" is 3 over the
        root of the number of features, and at least 1.
    early_stopping : bool or "auto", default="auto"
        Whether to hold out `validation_fraction` of the rows, to stop when their log likelihood has not risen by `tol`
        for `n_iter_no_change` looks (one every 100 steps), and to take the weights and the noise that had the most.
        "auto" does so from 50 rows on. Without it a network goes through all targets of a small noisy table, and its
        noise level falls to nothing.
    n_iter_no_change : int, default=10
        See above.
    noise_hold : float, default=None
        The part of training for which a learned noise level is held at a small start; None: it is free from the first
        step, and starts at the spread of the targets.
    learning_rate_init : float, default=0.003
        Adam's step size.
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class MAPClassifier(ClassifierPart, MAPEstimator):
    """Classification by a network with point weights under a Gaussian prior; see `MAPRegressor`."""
