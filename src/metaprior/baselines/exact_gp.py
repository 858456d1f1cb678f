"""The exact Gaussian process: the GP prior is on the function itself, not on the weights of a network.

y = f(x) + noise, f ~ GP(0, variance * kernel), one GP per target. Predictions are Gaussian, in closed form, and exact
given the hyper-parameters. Time grows as N^3 and memory as N^2, so it is for a few thousand rows.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

from metaprior import kernels
from metaprior.baselines.evidence import Evidence, Hypers, check_kernel, conditioned, maximised, repetitions
from metaprior.baselines.gp_functions import MOST_ROWS, ExactFunctions
from metaprior.estimators.base import Regressor
from metaprior.estimators.checks import expect, expect_whole, is_whole
from metaprior.estimators.config import Config
from metaprior.estimators.data_kernel import for_standardised
from metaprior.estimators.method import START_NOISE, Problem
from metaprior.estimators.renamed import accepts_old_names
from metaprior.estimators.restored import MOST_SCALE, check_numbers
from metaprior.estimators.targets import RegressionTargets, Targets
from metaprior.io.checkpoints import CheckpointConfig, refuse_checkpoint
from metaprior.kernels import Kernel, Scaled
from metaprior.likelihoods import Gaussian
from metaprior.predictive.gaussian import GaussianPredictive
from metaprior.user_warnings import warn_user

#: Values to try on the diagonal, in fractions of its mean, when the GPs of a file are computed again: another machine
#: may round differently.
RESTORED_JITTERS = (0.0, 1e-12, 1e-9, 1e-6)
#: The number of rows beyond which a fit takes long.
MANY_ROWS = 5_000


@dataclass(frozen=True)
class ExactGPConfig(Config):
    """The parameters of the prior, and of the search for its hyper-parameters."""

    kernel: Kernel | str | None
    n_restarts: int
    max_iter: int

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        expect_whole("n_restarts", self.n_restarts, 0)
        expect_whole("max_iter", self.max_iter, 0)


class ExactGPMethod:
    """One exact GP per target, in standardised units."""

    input_scaling = "per_column"
    noise_hold = 0.0

    def __init__(self, config: ExactGPConfig) -> None:
        """Keep the parameters."""
        self.config = config

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        self.config.check()

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return np.full(targets.shape[1], START_NOISE)

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Maximise the evidence of every target separately."""
        refuse_checkpoint("ExactGPRegressor", checkpoint)
        _check_rows(problem.num_rows)
        assert isinstance(problem.likelihood, Gaussian)
        noise, learned = np.exp(np.asarray(problem.likelihood.log_noise)), problem.likelihood.learned
        found, steps = [], [0]
        for k in range(problem.num_functions):
            hypers = Hypers(self._starting_kernel(problem, k), float(noise[k]))
            if self.config.max_iter:
                rows = problem.x_unit, problem.targets[:, k]
                evidence = Evidence(hypers, *rows, noise_learned=learned, weight=problem.weight)
                hypers, num_steps = self._maximised(evidence, seed)
                steps.append(num_steps)
            found.append(hypers)
        gps = [
            conditioned(hypers, problem.x_unit, problem.targets[:, k], weight=problem.weight)
            for k, hypers in enumerate(found)
        ]
        return {**in_data_units(found, gps, problem), "draw_seed_": seed, "n_iter_": max(steps)}

    def _maximised(self, evidence: Evidence, seed: int) -> tuple[Hypers, int]:
        rng = np.random.default_rng(seed)  # the same for every target: its fit does not depend on the others
        config = self.config
        return maximised(evidence, num_restarts=int(config.n_restarts), max_iter=int(config.max_iter), rng=rng)

    def check_fitted(self, fitted: Any, num_features: int, targets: Targets) -> None:
        """Raise an error unless every target has hyper-parameters and rows from which its GP can be computed."""
        assert isinstance(targets, RegressionTargets)
        is_seed = is_whole(fitted.draw_seed_) and fitted.draw_seed_ >= 0
        expect("draw_seed_", fitted.draw_seed_, "a whole number of at least 0", is_seed)
        if not len(fitted._hypers) == len(fitted._rows) == len(targets.scale):
            raise ValueError(f"expected {len(targets.scale)} GPs, one for every target")
        for hypers, (x, y) in zip(fitted._hypers, fitted._rows, strict=True):
            if not isinstance(hypers, Hypers) or not 0 < hypers.noise < MOST_SCALE:
                raise ValueError("expected hyper-parameters with a positive noise")
            num_rows = min(max(1, len(x)), MOST_ROWS)
            check_numbers("the inputs of a GP", x, (num_rows, num_features), -MOST_SCALE)
            check_numbers("the targets of a GP", y, (num_rows,), -MOST_SCALE)
            check_kernel(hypers.kernel, x)
            weight = vars(fitted).get("_row_weight")
            if weight is not None:
                check_numbers("the weights of a GP", weight, (num_rows,), float(np.finfo(float).tiny))

    def _starting_kernel(self, problem: Problem, k: int) -> Scaled:
        """Return the kernel, with its variance, for standardised inputs and the standardised k-th target."""
        asked = self.config.kernel
        kernel = (kernels.RBF() if asked is None else kernels.named(asked, "kernel")).with_columns(problem.names)
        scaled = (
            with_scale_times(kernel, _target_scales(problem)[k] ** -2)
            if isinstance(kernel, Scaled)
            else Scaled(kernel, 1.0)
        )
        rows = problem.x, problem.targets[:, [k]], problem.x_scale
        inner = for_standardised(scaled.inner, *rows, weight=problem.weight)
        return scaled.set_params(inner=inner)

    def predictive(self, fitted: Any, x_unit: np.ndarray, targets: Targets) -> GaussianPredictive:
        """Return the posterior of the functions, in closed form."""
        assert isinstance(targets, RegressionTargets)
        return GaussianPredictive(
            ExactFunctions(fitted.gps_, x_unit),
            np.array([hypers.noise for hypers in fitted._hypers]),
            targets.offset,
            targets.scale,
            flat=targets.flat,
            seed=fitted.draw_seed_,
        )

    def sampled(self, fitted: Any, x_unit: np.ndarray, targets: Targets, n_samples: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over the rows."""
        return self.predictive(fitted, x_unit, targets).function_draws(n_samples, seed)


def _target_scales(problem: Problem) -> np.ndarray:
    assert isinstance(problem.kind, RegressionTargets)
    return problem.kind.scale


def in_data_units(found: list[Hypers], gps: list[GaussianProcessRegressor], problem: Problem) -> dict[str, Any]:
    """Return the fitted attributes: the GPs, and the hyper-parameters in the units of the data."""
    assert isinstance(problem.kind, RegressionTargets)
    scales, flat = problem.kind.scale, problem.kind.flat
    fitted = tuple(
        with_scale_times(hypers.kernel, scale**2)
        .set_params(inner=hypers.kernel.inner.unstandardised(problem.x_scale))
        .with_names(problem.names)
        for hypers, scale in zip(found, scales, strict=True)
    )
    noise = np.array([hypers.noise for hypers in found]) * scales
    evidence = sum(gp.log_marginal_likelihood() for gp in gps)
    if problem.weight is not None:
        evidence += sum(repetitions(hypers.noise, problem.weight) for hypers in found)
    return {
        "_hypers": found,
        "gps_": gps,
        "kernel_": fitted[0] if flat else fitted,
        "noise_": float(noise[0]) if flat else noise,
        # p(y) = p(y / scale) / scale^N
        "log_evidence_": float(evidence - problem.total_weight * np.sum(np.log(scales))),
        "_row_weight": problem.weight,
    }


def with_scale_times(kernel: Scaled, factor: float) -> Scaled:
    """Return the kernel with its scale and the bounds of the scale multiplied by a factor."""
    settings = kernel.get_params(deep=False)
    bounds = {name: (low * factor, high * factor) for name, (low, high) in (settings["bounds"] or {}).items()}
    return kernel.set_params(scale=settings["scale"] * factor, bounds=bounds or None)


def _check_rows(num_rows: int) -> None:
    if num_rows > MOST_ROWS:
        raise ValueError(
            f"ExactGPRegressor: expected at most {MOST_ROWS} rows, whose covariances fit into memory; got {num_rows}: "
            "fit some of them, or use an estimator that trains on batches, such as MetaGPRegressor."
        )
    if num_rows > MANY_ROWS:
        warn_user(
            f"ExactGPRegressor: {num_rows} rows are many for an exact GP: time grows with their cube and memory "
            "with their square; fewer rows or n_restarts=0 would be faster.",
            once="many rows",
        )


@accepts_old_names
@dataclass(eq=False, repr=False)
class ExactGPRegressor(Regressor):
    """Regression by an exact Gaussian process whose hyper-parameters maximise the marginal likelihood.

    It is for a few thousand rows, because time grows with their cube. Inputs and targets are standardised internally;
    parameters and predictions are in the units of the data. Every target has its own GP and hyper-parameters.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        The covariance of the function; None means an RBF kernel. It is multiplied by a learned variance, which starts
        at the variance of the target. With `2.0 * kernel` it starts at 2.0 squared units of the target. The `fixed` and
        `bounds` of a kernel are respected. A `Periodic` kernel without a period starts from the spectrum of the data.
    n_restarts : int, default=2
        The number of random starts of the optimizer, in addition to the given hyper-parameters. The fit with the
        highest evidence is kept.
    noise : float or sequence, default=None
        A fixed standard deviation of the noise in the units of the target: one number, or one per target. None learns
        it.
    max_iter : int, default=200
        The largest number of optimizer steps from each start. 0 keeps the hyper-parameters as they are given.
    random_state : int, RandomState or None, default=None
        The seed of the random starts.

    Attributes
    ----------
    kernel_ : Kernel, or tuple of them for several targets
        The fitted covariance of the function, including its variance, in units of the data. (For kernels that are not
        stationary, the inputs are those less their mean.)
    noise_ : float, or ndarray of shape (n_targets,)
        The standard deviation of the noise, in target units.
    log_evidence_ : float
        The log marginal likelihood, in nats, of the targets in their own units, summed over targets.
    n_iter_ : int
        The number of steps of the run that was kept. For several targets it is the largest one.
    gps_ : list of sklearn.gaussian_process.GaussianProcessRegressor
        The fitted GPs, one per target, in standardised units.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import kernels
    >>> from metaprior.baselines import ExactGPRegressor
    >>> x = np.linspace(-2, 2, 80)[:, None]
    >>> model = ExactGPRegressor(kernels.Periodic(), random_state=0).fit(x, np.sin(4 * x[:, 0]))
    >>> mean, std = model.predict(x + 4, return_std=True)
    """

    kernel: Kernel | str | None = None
    _: KW_ONLY
    noise: float | Sequence[float] | None = None
    n_restarts: int = 2
    max_iter: int = 200
    random_state: int | np.random.RandomState | None = None

    def _method(self) -> ExactGPMethod:
        return ExactGPMethod(ExactGPConfig.of(self))

    @cached_property
    def gps_(self) -> list[GaussianProcessRegressor]:
        """The fitted GPs. A fit stores them here; those of a file are computed when they are first needed."""
        if "_rows" not in vars(self):
            raise AttributeError("gps_: this ExactGPRegressor is not fitted yet.")
        pairs = zip(vars(self)["_hypers"], vars(self)["_rows"], strict=True)
        weight = vars(self).get("_row_weight")
        return [conditioned(hypers, x, y, RESTORED_JITTERS, weight) for hypers, (x, y) in pairs]

    def saved_state(self) -> dict[str, Any]:
        """Return the state, with the data of the GPs in their place. The GPs can be computed from these."""
        state = super().saved_state()
        rows = state.pop("_rows", None) or [(gp.X_train_, gp.y_train_) for gp in state["gps_"]]
        return {**state, "gps_": rows}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Keep the data of the GPs. Computing the GPs takes memory that grows with the square of the rows."""
        others = {name: value for name, value in state.items() if name != "gps_"}
        super().restore_state({**others, "_rows": state["gps_"]})
