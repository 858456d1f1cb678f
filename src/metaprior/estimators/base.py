"""What all estimators share: scikit-learn's contract around a model of this library.

`fit` standardises, builds the model, trains it and fixes the draws; `predict_distribution` answers with a
`Predictive`. Nothing jitted hangs on the estimator, and predicting adds no attribute, so it clones, pickles and copies.

The parameters of an estimator are the fields of a dataclass: scikit-learn reads them from the signature, and a class
that adds some need not write the others again.
"""

import abc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import jax
import numpy as np
import optax
from jax.sharding import Mesh
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from metaprior.compilation import compilation_cache, drop_programs_when_many
from metaprior.estimators.checks import expect, is_number, is_whole, standard_units, text_columns
from metaprior.estimators.phases import Phase, joined_fits, usual_phase
from metaprior.estimators.progress import progress_bar
from metaprior.estimators.renamed import without_old_names
from metaprior.estimators.stopping import FlatElbo, HeldOutScore, as_numpy, hold_out
from metaprior.inference import Data, Fit, Recipe, Settling, StepConfig, StopRule, make_data, row_mesh, train
from metaprior.io.checkpoints import Checkpoint, CheckpointConfig, digest_of
from metaprior.io.saving import save
from metaprior.likelihoods import Likelihood
from metaprior.likelihoods.gaussian import NOISE_HOLD
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws, NetworkDraws
from metaprior.random import make_key
from metaprior.weights import WeightModel

#: Noise at the start, in standard deviations of the target: small, so that the signal is learned first.
START_NOISE = 0.1
#: Rows up to which every step sees all data, and rows of a batch beyond that.
FULL_BATCH, AUTO_BATCH = 512, 256
#: Where in the recipe a warm start begins: everything is let in, only the noise is still held.
WARM_BEGINS = 0.7
#: Rows from which on `early_stopping="auto"` holds some out: of fewer, all are needed and a tenth says little.
AUTO_HOLDS_OUT = 50
#: Draws of the latents in a step, where every weight is drawn.
NUM_TRAIN_DRAWS = 4
#: The float types that training knows.
DTYPES = ("float32", "float64")


class Estimator(BaseEstimator, abc.ABC):
    """The contract of every estimator: checked data in, a predictive distribution out."""

    def _checked(self, X: Any, *target: Any, **kwargs: Any) -> Any:
        """Validate X (at predict) or X and y (at fit) as scikit-learn does; name columns that are not numbers."""
        try:
            return validate_data(self, X, *target, reset=bool(target), dtype=np.float64, **kwargs)
        except ValueError as error:
            columns = text_columns(X)
            if "could not convert" in str(error) and columns:
                raise ValueError(
                    f"expected numeric columns; {columns} are not: encode them (for instance with scikit-learn's "
                    "OneHotEncoder) or leave them out."
                ) from error
            raise

    @abc.abstractmethod
    def _taken(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Likelihood, int]:
        """Check the data; return the arguments of `_fit`."""

    @abc.abstractmethod
    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        """Fit to raw inputs and (standardised) targets; a `place` keeps checkpoints."""

    @abc.abstractmethod
    def _answer(self, X: np.ndarray) -> Predictive:
        """Return the predictive distribution at checked rows."""

    @abc.abstractmethod
    def _sampled(self, X: np.ndarray, n_samples: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over checked rows, [n_samples, rows] or [n_samples, rows, outputs]."""

    def _going_on(self) -> bool:
        """Return whether `fit` continues the last fit."""
        return False

    @property
    def _noise_hold(self) -> float:
        """The part of training for which a regressor's noise is held at its small start."""
        return NOISE_HOLD

    @property
    def _noise_at_start(self) -> float:
        """Noise at the start, in standard deviations of the target."""
        return START_NOISE

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write the fitted estimator to one file, which `metaprior.load` reads; no pickle.

        Parameters
        ----------
        path : str or path
            For instance "model.metaprior".
        overwrite : bool, default=False
            Whether a file that is there may be replaced.
        """
        check_is_fitted(self)
        save(self, path, overwrite=overwrite)

    def _saved_state(self) -> dict[str, Any]:
        """Return what fitting has added, in parts that can be saved."""
        return {name: value for name, value in vars(self).items() if name not in self.get_params(deep=False)}

    def _restore(self, state: dict[str, Any]) -> None:
        """Take back what `_saved_state` gave."""
        for name, value in state.items():
            setattr(self, name, value)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, by their present names or, for one release, their old ones."""
        return super().set_params(**without_old_names(params))

    def predict_distribution(self, X: Any) -> Predictive:
        """Return the predictive distribution at X: mean, variances, quantiles, entropy, log density, draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        Predictive
        """
        check_is_fitted(self)
        return self._answer(self._checked(X))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior, coherent over the rows of X (without observation noise).

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples), (n_samples_X, n_targets, n_samples) for several targets or
        (n_samples_X, n_classes, n_samples), class probabilities, for a classifier
        """
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return np.moveaxis(self._sampled(self._checked(X), n_samples, seed), 0, -1)


class Problem(NamedTuple):
    """What is to be fitted: inputs, raw and in standard units, targets, and how these follow from functions."""

    x: np.ndarray
    x_unit: np.ndarray
    targets: np.ndarray
    likelihood: Likelihood
    num_functions: int
    #: which of several starts this is: a period starts from another peak of the spectrum
    start: int = 0


@dataclass(eq=False, repr=False)
class NetworkEstimator(Estimator):
    """The parameters and the machinery of every estimator that is a network."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable = "tanh"
    _: KW_ONLY
    input_scaling: str = "per_column"
    dtype: str = "float32"
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    @abc.abstractmethod
    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return the weight model before training."""

    @abc.abstractmethod
    def _predictive(self, draws: FunctionDraws) -> Predictive:
        """Return what drawn functions say, in the units of the data."""

    def _begun(
        self, x: np.ndarray, targets: np.ndarray, likelihood: Likelihood, num_functions: int
    ) -> tuple[int, Problem]:
        """Check the parameters; return the seed of the fit and what is to be fitted."""
        self._check_parameters()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self._going_on():
            self._check_continued(x.shape[1], num_functions)
        else:
            self.x_offset_, self.x_scale_ = self._units_of(x)
        return seed, Problem(x, self._in_units(x), targets, likelihood, num_functions)

    def _units_of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the offset and the scale of every column: its own, or those of all values together."""
        if self.input_scaling == "per_column":
            return standard_units(x)
        offset, scale = standard_units(x.reshape(-1, 1))
        return np.repeat(offset, x.shape[1]), np.repeat(scale, x.shape[1])

    def _in_units(self, x: np.ndarray) -> np.ndarray:
        return (x - self.x_offset_) / self.x_scale_

    def _started(self, problem: Problem, seed: int) -> Model:
        """Return the model before training."""
        network = Dense(self._sizes(problem.x.shape[1], problem.num_functions), self.activation)
        weights = self._initial_weights(network, problem, np.random.default_rng(seed))
        return Model(weights, network, problem.likelihood)

    def _sizes(self, num_features: int, num_functions: int) -> tuple[int, ...]:
        hidden = np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=int)).tolist()
        return (num_features, *hidden, num_functions)

    def _check_continued(self, num_features: int, num_functions: int) -> None:
        """Say so where a warm start gets other data than the last fit had."""
        first, *_, last = self.model_.network.sizes
        for what, expected, got in [("features", first, num_features), ("targets", last, num_functions)]:
            if got != expected:
                raise ValueError(f"warm_start: expected {expected} {what}, as in the last fit; got {got}.")

    def _n_predict_draws(self) -> int:
        """Return how many draws predictions mix: one, where the weights are a point."""
        return 1

    def _function_draws(self, X: np.ndarray, num_draws: int, key: np.ndarray, *, joint: bool = False) -> FunctionDraws:
        return NetworkDraws(self.model_, key, num_draws, self._in_units(X), joint=joint)

    def _answer(self, X: np.ndarray) -> Predictive:
        return self._predictive(self._function_draws(X, self._n_predict_draws(), self.draw_key_))

    def _sampled(self, X: np.ndarray, n_samples: int, seed: int) -> np.ndarray:
        key = np.array([seed, 1], np.uint32)
        return self._predictive(self._function_draws(X, n_samples, key, joint=True)).draws()

    @property
    def _float_type(self) -> str:
        """The float type that training computes in."""
        return self.dtype

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute in the estimator's float type, with the compilation cache on."""
        drop_programs_when_many()
        with compilation_cache(), jax.enable_x64(self._float_type == "float64"):
            yield

    def _known_dtypes(self) -> tuple[str, ...]:
        """Return what `dtype` may be."""
        return DTYPES

    def _whole_numbers(self) -> list[tuple[str, int]]:
        """Return the parameters that are whole numbers, each with its lowest value."""
        return []

    def _check_parameters(self) -> None:
        """Say what is expected of every parameter that is not as expected."""
        hidden = np.atleast_1d(np.asarray(self.hidden_layer_sizes))
        expect(
            "hidden_layer_sizes",
            self.hidden_layer_sizes,
            "whole numbers of at least 1",
            bool(
                hidden.ndim == 1
                and (hidden.size == 0 or (np.issubdtype(hidden.dtype, np.integer) and hidden.min() >= 1))
            ),
        )
        for name, lowest in self._whole_numbers():
            value = getattr(self, name)
            expect(name, value, f"a whole number of at least {lowest}", is_whole(value) and value >= lowest)
        known = self._known_dtypes()
        expect("dtype", self.dtype, " or ".join(f"'{name}'" for name in known), self.dtype in known)
        known_scaling = self.input_scaling in ("per_column", "joint")
        expect("input_scaling", self.input_scaling, "'per_column' or 'joint'", known_scaling)


class Job(NamedTuple):
    """One fit: the model before it, the phases to come, its data, the rule that may end it, and its seed."""

    model: Model
    phases: list[Phase]
    data: Data
    stop_when: StopRule | None
    seed: int


@dataclass(eq=False, repr=False)
class TrainedEstimator(NetworkEstimator):
    """A network that is trained by its ELBO."""

    _: KW_ONLY
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.02
    optimizer: optax.GradientTransformation | None = None
    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 0.0
    warm_start: bool = False
    devices: int | str | None = None

    def _going_on(self) -> bool:
        return self.warm_start and hasattr(self, "model_")

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        """Build or continue a model and train it."""
        seed, problem = self._begun(x, targets, likelihood, num_functions)
        model = self.model_ if self._going_on() else self._started(problem, seed)
        self._keep(self._trained(model, problem, seed, place), seed)

    def _job(self, problem: Problem, seed: int) -> Job:
        """Return what training needs, for several that train side by side."""
        model = self.model_ if self._going_on() else self._started(problem, seed)
        with self._computing():
            return Job(model, self._phases(model, problem, seed), *self._split(problem, seed), seed)

    @property
    def _is_one_run(self) -> bool:
        """Whether a fit is one run of training and nothing else."""
        return True

    def _recipe(self, num_rows: int) -> Recipe:
        """Return how training on so many rows goes."""
        return Recipe(
            num_steps=int(self.max_iter),
            learning_rate=self._learning_rate(num_rows) if self.optimizer is None else 1.0,
            begins=WARM_BEGINS if self._going_on() else 0.0,
        )

    def _learning_rate(self, num_rows: int) -> float:
        """Return Adam's step size."""
        return float(self.learning_rate_init)

    def _draws_a_step(self, num_rows: int) -> StepConfig:
        """Return how many rows and draws a step takes."""
        return StepConfig(self._batch_size(num_rows), 1, 1)

    def _phases(self, model: Model, problem: Problem, seed: int) -> list[Phase]:
        """Return the phases of a fit, in their order."""
        return [usual_phase(self._recipe(len(problem.x)), self._settling(len(problem.x)))]

    def _trained(
        self,
        model: Model,
        problem: Problem,
        seed: int,
        place: CheckpointConfig | None = None,
        phases: Sequence[Phase] | None = None,
    ) -> Fit:
        phases = self._phases(model, problem, seed) if phases is None else phases
        draws, fits = self._draws_a_step(len(problem.x)), list[Fit]()
        with self._computing():
            data, stop_when = self._split(problem, seed)
            for number, phase in enumerate(phases, 1):
                model = phase.ready(fits[-1].model if fits else model)
                own = place if place is None or number == len(phases) else place.inside(f"phase{number}")
                fits.append(self._trained_phase(phase, Job(model, [], data, stop_when, seed), draws, own))
        return self._with_rows(joined_fits(fits), data)

    def _trained_phase(self, phase: Phase, job: Job, draws: StepConfig, place: CheckpointConfig | None) -> Fit:
        begins = None if place is None else digest_of(job.model, job.data, phase.recipe, draws, job.seed)
        with progress_bar(self.verbose) as listener:
            return train(
                job.model,
                job.data,
                make_key(job.seed),
                recipe=phase.recipe,
                step_config=draws,
                optimizer=self.optimizer,
                listener=listener,
                stop_when=job.stop_when,
                mesh=self._mesh(),
                checkpoint_store=None if place is None or begins is None else Checkpoint(place, begins),
                settling=phase.settling,
            )

    def _settling(self, num_rows: int) -> Settling | None:
        """Return when training has converged; None: it takes `max_iter` steps."""
        return None

    def _with_rows(self, fit: Fit, data: Data) -> Fit:
        """Return the fit with the rows that its predictions need: those of weights need none."""
        return fit

    def _mesh(self) -> Mesh | None:
        """Return the devices that the rows of a step are spread over; None for one device."""
        return None if self.devices is None else row_mesh(None if self.devices == "all" else int(self.devices))

    def _keep(self, fit: Fit, seed: int) -> None:
        """Store the result as NumPy arrays: it pickles, and nothing of it lives on a device."""
        self.model_ = as_numpy(fit.model)
        self.draw_key_ = np.array([seed, 0], np.uint32)
        self.n_iter_ = fit.num_steps
        self.elbo_history_ = fit.history["elbo"]
        self.elbo_terms_ = {name: values for name, values in fit.history.items() if name != "elbo"}

    def _batch_size(self, num_rows: int) -> int | None:
        if self.batch_size == "auto":
            return None if num_rows <= FULL_BATCH else AUTO_BATCH
        return None if int(self.batch_size) >= num_rows else int(self.batch_size)

    def _split(self, problem: Problem, seed: int) -> tuple[Data, StopRule | None]:
        """Return the data to train on and the rule that may end the run early."""
        x, targets = problem.x_unit, problem.targets

        def part(rows: np.ndarray | slice) -> Data:
            return make_data(x[rows], targets[rows], dtype=np.dtype(self._float_type).type)

        if not self._holds_out(len(x)):
            rule = FlatElbo(self.tol, self.n_iter_no_change, len(x)) if self.tol > 0 else None
            return part(slice(None)), rule
        seen, held = hold_out(len(x), self.validation_fraction, seed)
        data = part(seen)
        return data, HeldOutScore(self.tol, self.n_iter_no_change, part(held), make_key(seed), data)

    def _holds_out(self, num_rows: int) -> bool:
        """Return whether some rows are held out, to end the run early."""
        return num_rows >= AUTO_HOLDS_OUT if self.early_stopping == "auto" else bool(self.early_stopping)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("max_iter", 1), ("n_iter_no_change", 1)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        expect_auto_or_whole("batch_size", self.batch_size)
        fraction = self.validation_fraction
        self._check_learning_rate()
        expect("tol", self.tol, "a number of at least 0", is_number(self.tol) and self.tol >= 0)
        expect(
            "validation_fraction",
            fraction,
            "a number between 0 and 1",
            is_number(fraction) and 0 < fraction < 1,
        )
        early = self.early_stopping
        is_known = isinstance(early, bool | np.bool_) or (isinstance(early, str) and early == "auto")
        expect("early_stopping", early, "True, False or 'auto'", is_known)
        known = self.devices is None or self.devices == "all" or (is_whole(self.devices) and int(self.devices) >= 1)
        expect("devices", self.devices, "None, a number of devices or 'all'", known)
        is_optax = self.optimizer is None or (hasattr(self.optimizer, "init") and hasattr(self.optimizer, "update"))
        expect("optimizer", self.optimizer, "an optax optimiser, or None for Adam", is_optax)

    def _check_learning_rate(self) -> None:
        rate = self.learning_rate_init
        expect("learning_rate_init", rate, "a positive number", is_number(rate) and rate > 0)


@dataclass(eq=False, repr=False)
class VariationalEstimator(TrainedEstimator):
    """A network whose weights have a posterior that is drawn from, in training and in prediction."""

    _: KW_ONLY
    n_train_draws: int = NUM_TRAIN_DRAWS
    n_predict_draws: int = 128

    def _draws_a_step(self, num_rows: int) -> StepConfig:
        return StepConfig(self._batch_size(num_rows), int(self.n_train_draws), 1)

    def _n_predict_draws(self) -> int:
        return int(self.n_predict_draws)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("n_train_draws", 1), ("n_predict_draws", 2)]


def expect_auto_or_whole(name: str, value: object) -> None:
    """Raise unless the parameter is "auto" or a whole number of at least 1."""
    holds = (isinstance(value, str) and value == "auto") or (is_whole(value) and value >= 1)  # type: ignore[operator]
    expect(name, value, "'auto' or a whole number of at least 1", holds)
