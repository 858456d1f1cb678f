"""The exact Gaussian process: the function itself, and not a network's weights, has the kernel as its prior.

y = f(x) + noise, f ~ GP(0, variance * kernel), a GP a target. What it predicts is Gaussian, in closed form; nothing is
approximated but the choice of the hyper-parameters. Time grows as N^3 and memory as N^2: some thousand rows.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils.validation import check_random_state

from metaprior import kernels
from metaprior.baselines.evidence import Evidence, Hypers, conditioned, maximised
from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import expect, is_whole, standard_units
from metaprior.estimators.data_kernel import for_standardised
from metaprior.estimators.regressor import GaussianRegressorPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.io.checkpoints import CheckpointConfig, refuse_checkpoint
from metaprior.kernels import Kernel, Scaled
from metaprior.likelihoods import Gaussian, Likelihood
from metaprior.predictive.draws import CHUNK_ROWS
from metaprior.predictive.gaussian import GaussianFunctions, GaussianPredictive

#: Rows beyond which a fit takes long, and beyond which a fit, or a draw over so many rows, is refused.
MANY_ROWS, MOST_ROWS = 5_000, 20_000
#: What a covariance that is drawn from gets on its diagonal, in parts of its largest variance: less fails in rounding.
DRAW_JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)


@accepts_old_names
@dataclass(eq=False, repr=False)
class ExactGPRegressor(GaussianRegressorPart, Estimator):
    """Regression by an exact Gaussian process, hyper-parameters by marginal likelihood.

    For some thousand rows: time grows with their cube. Inputs and targets are standardised inside, and everything given
    or answered is in the units of the data. Every target has a GP with hyper-parameters of its own.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        Covariance of the function (None: RBF). It is multiplied by a learned variance, which starts at the variance of
        the target, or from `2.0 * kernel` at 2.0 squared units of the target. `fixed` and `bounds` of a kernel are
        respected. A `Periodic` kernel without a period starts from the spectrum of the data.
    n_restarts : int, default=2
        Random starts of the optimiser beside the one at the given hyper-parameters; the best evidence wins.
    noise : float or sequence, default=None
        A fixed standard deviation of the noise, in target units (or one a target); None: learned.
    max_iter : int, default=200
        Most steps of the optimiser from each start; 0 keeps the hyper-parameters as they are given.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : Kernel, or tuple of them for several targets
        The fitted covariance of the function, variance included, in units of the data. (Kernels that are not
        stationary see inputs from which the mean is taken.)
    noise_ : float, or ndarray of shape (n_targets,)
        The standard deviation of the noise, in target units.
    log_evidence_ : float
        The log marginal likelihood, in nats, of the targets in their own units; the sum over targets.
    n_iter_ : int
        Steps of the run that won (the most of them where there are several targets).
    gps_ : list of sklearn.gaussian_process.GaussianProcessRegressor
        The fitted GPs, one a target, in standardised units.

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
    n_restarts: int = 2
    max_iter: int = 200
    random_state: int | np.random.RandomState | None = None

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        self._check_parameters()
        refuse_checkpoint(self, place)
        _check_rows(len(x))
        assert isinstance(likelihood, Gaussian)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.x_offset_, self.x_scale_ = standard_units(x)
        noise = np.exp(np.asarray(likelihood.log_noise))
        found, steps = [], [0]
        for k in range(num_functions):
            hypers = Hypers(self._starting_kernel(x, targets[:, [k]], k), float(noise[k]))
            if self.max_iter:
                hypers, num_steps = self._maximised(hypers, x, targets[:, k], seed)
                steps.append(num_steps)
            found.append(hypers)
        self._hypers = found
        self.gps_ = [conditioned(h, self._in_units(x), targets[:, k]) for k, h in enumerate(found)]
        self._keep(found, seed)
        self.n_iter_ = max(steps)

    def _in_units(self, x: np.ndarray) -> np.ndarray:
        return (x - self.x_offset_) / self.x_scale_

    def _starting_kernel(self, x: np.ndarray, target: np.ndarray, k: int) -> Scaled:
        """Return the kernel and its variance for standardised inputs and the k-th target, standardised."""
        kernel = kernels.RBF() if self.kernel is None else kernels.named(self.kernel, "kernel")
        shape, variance = (
            (kernel.inner, _variance(kernel) / self.y_scale_[k] ** 2) if isinstance(kernel, Scaled) else (kernel, 1.0)
        )
        return Scaled(for_standardised(shape, x, target, self.x_scale_), variance)

    def _maximised(self, start: Hypers, x: np.ndarray, target: np.ndarray, seed: int) -> tuple[Hypers, int]:
        rng = np.random.default_rng(seed)  # of every target anew: its fit is the one it would have alone
        evidence = Evidence(start, self._in_units(x), target, noise_learned=self.noise is None)
        return maximised(evidence, num_restarts=int(self.n_restarts), max_iter=int(self.max_iter), rng=rng)

    def _keep(self, found: list[Hypers], seed: int) -> None:
        """Store what was found, in the units of the data."""
        fitted = tuple(
            Scaled(hypers.kernel.inner.unstandardised(self.x_scale_), _variance(hypers.kernel) * scale**2)
            for hypers, scale in zip(found, self.y_scale_, strict=True)
        )
        noise = np.array([hypers.noise for hypers in found]) * self.y_scale_
        self.kernel_: Kernel | tuple[Kernel, ...] = fitted[0] if self._flat else fitted
        self.noise_: float | np.ndarray = float(noise[0]) if self._flat else noise
        evidence = sum(gp.log_marginal_likelihood() for gp in self.gps_)
        # p(y) = p(y / scale) / scale^N
        self.log_evidence_ = float(evidence - len(self.gps_[0].X_train_) * np.sum(np.log(self.y_scale_)))
        self.draw_seed_ = seed

    def _saved_state(self) -> dict[str, Any]:
        """Say the GPs by their hyper-parameters and data: given these, they are computed."""
        return {**super()._saved_state(), "gps_": [(gp.X_train_, gp.y_train_) for gp in self.gps_]}

    def _restore(self, state: dict[str, Any]) -> None:
        pairs = zip(state["_hypers"], state["gps_"], strict=True)
        super()._restore({**state, "gps_": [conditioned(hypers, x, y) for hypers, (x, y) in pairs]})

    def _answer(self, X: np.ndarray) -> GaussianPredictive:
        return GaussianPredictive(
            ExactFunctions(self.gps_, self._in_units(X)),
            np.atleast_1d(self.noise_) / self.y_scale_,
            self.y_offset_,
            self.y_scale_,
            flat=self._flat,
            seed=self.draw_seed_,
        )

    def _sampled(self, X: np.ndarray, n_samples: int, seed: int) -> np.ndarray:
        return self._answer(X).function_draws(n_samples, seed)

    def _check_parameters(self) -> None:
        for name in ("n_restarts", "max_iter"):
            value = getattr(self, name)
            expect(name, value, "a whole number of at least 0", is_whole(value) and value >= 0)


class ExactFunctions(GaussianFunctions):
    """The posterior functions of fitted GPs, one an output, at given standardised rows."""

    def __init__(self, gps: list[GaussianProcessRegressor], x: np.ndarray) -> None:
        """Keep what is needed; nothing is computed yet."""
        self.gps, self.x, self.num_rows = gps, x, len(x)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance, [N, outputs], a chunk of rows at a time."""
        parts = [
            [_moments(gp, self.x[start : start + CHUNK_ROWS]) for start in range(0, self.num_rows, CHUNK_ROWS)]
            for gp in self.gps
        ]
        mean, variance = (np.stack([np.concatenate([c[i] for c in chunks]) for chunks in parts], 1) for i in (0, 1))
        return mean, variance

    def draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over the rows, [S, N, outputs]."""
        if self.num_rows > MOST_ROWS:
            raise ValueError(
                f"draws: functions are drawn jointly over all rows; expected at most {MOST_ROWS} of them, got "
                f"{self.num_rows}: draw at fewer rows."
            )
        rng = np.random.default_rng(seed)
        return np.stack([_joint_draws(gp, self.x, rng.standard_normal((num_draws, len(self.x)))) for gp in self.gps], 2)


def _variance(kernel: Scaled) -> float:
    return float(np.exp(np.asarray(kernel.leaf("scale"))))


def _half(gp: GaussianProcessRegressor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, X) and L^-1 k(X, x), where L L' = k(X, X) + noise^2 I."""
    cross = gp.kernel_(x, gp.X_train_)
    return cross, solve_triangular(gp.L_, cross.T, lower=True, check_finite=False)


def _moments(gp: GaussianProcessRegressor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, X) (L L')^-1 y and k(x, x) - |L^-1 k(X, x)|^2."""
    cross, half = _half(gp, x)
    return cross @ gp.alpha_, np.maximum(gp.kernel_.diag(x) - np.sum(half**2, axis=0), 0.0)


def _joint_draws(gp: GaussianProcessRegressor, x: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return mean + R n, where R R' is the posterior covariance of the rows."""
    cross, half = _half(gp, x)
    covariance = gp.kernel_(x) - half.T @ half
    return cross @ gp.alpha_ + normals @ _root(covariance).T


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return a Cholesky factor; of a covariance that is singular to rounding, that of its nearest neighbour."""
    largest = float(np.max(np.diag(covariance), initial=1e-300))
    for jitter in DRAW_JITTERS:
        try:
            return np.linalg.cholesky(covariance + jitter * largest * np.eye(len(covariance)))
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))


def _check_rows(num_rows: int) -> None:
    if num_rows > MOST_ROWS:
        raise ValueError(
            f"ExactGPRegressor: expected at most {MOST_ROWS} rows, whose covariances fit into memory; got {num_rows}: "
            "fit a part of them, or take an estimator that trains on batches, such as MetaGPRegressor."
        )
    if num_rows > MANY_ROWS:
        warnings.warn(
            f"ExactGPRegressor: {num_rows} rows are many for an exact GP: time grows with their cube and memory "
            "with their square; a part of the rows, or n_restarts=0, is faster.",
            UserWarning,
            stacklevel=4,
        )
