"""What a method is: how a model is started, fitted and asked; and the methods that train a network by its ELBO.

An estimator is its parameters and scikit-learn's words. It hands its parameters to a method, made anew for every call,
and keeps what the method's `fit` returns. A method holds no state of a fit.
"""

import abc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from metaprior.compilation import compilation_cache, drop_programs_when_many, one_blas_thread
from metaprior.estimators.config import DrawsConfig, NetworkConfig, TrainingConfig
from metaprior.estimators.phases import Phase, joined_fits, usual_phase
from metaprior.estimators.progress import progress_bar
from metaprior.estimators.stopping import FlatElbo, HeldOutScore, as_numpy, hold_out
from metaprior.estimators.targets import Targets
from metaprior.inference import Data, Fit, Recipe, Settling, StepConfig, StopRule, make_data, train
from metaprior.io.checkpoints import Checkpoint, CheckpointConfig
from metaprior.likelihoods import Likelihood
from metaprior.likelihoods.gaussian import NOISE_HOLD
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws, NetworkDraws
from metaprior.random import make_key
from metaprior.weights import WeightModel

#: Noise at the start, in standard deviations of the target.
START_NOISE = 0.1
#: Where in the recipe a warm start begins: everything is let in, only the noise is still held.
WARM_BEGINS = 0.7
#: The draws of a network whose weights are a point.
ONE_DRAW = DrawsConfig()


class Problem(NamedTuple):
    """What is to be fitted: inputs, raw and standardised, targets, and how these follow from functions."""

    x: np.ndarray
    x_unit: np.ndarray
    x_scale: np.ndarray
    targets: np.ndarray
    likelihood: Likelihood
    num_functions: int
    kind: Targets
    #: The model that a warm start goes on from; None: the fit begins anew.
    last: Model | None = None
    #: Which of several starts this is: a period starts from another peak of the spectrum.
    start: int = 0
    #: The names of the columns, where they have names.
    names: tuple[str, ...] | None = None
    #: How often each row counts; None: once.
    weight: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.x)

    @property
    def total_weight(self) -> float:
        """How many rows all of them count as."""
        return float(len(self.x) if self.weight is None else np.sum(self.weight))


class Method(Protocol):
    """How a model is fitted and asked; what an estimator needs of its method."""

    @property
    def input_scaling(self) -> str:
        """How inputs are standardised: "per_column" or "joint"."""
        ...

    @property
    def noise_hold(self) -> float:
        """The part of training for which a learned noise is held at its start, unless the user says it."""
        ...

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return where a learned noise starts, one value per target, for standardised targets."""
        ...

    def check(self) -> None:
        """Raise where a parameter is not as expected."""
        ...

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Fit, and return the attributes that the estimator keeps."""
        ...

    def predictive(self, fitted: Any, x_unit: np.ndarray, targets: Targets) -> Predictive:
        """Return the predictive distribution at standardised rows, by an estimator that keeps a fit."""
        ...

    def sampled(self, fitted: Any, x_unit: np.ndarray, targets: Targets, n_samples: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over standardised rows, [n_samples, rows] or [n_samples, rows, outputs]."""
        ...

    def check_fitted(self, fitted: Any, num_features: int, targets: Targets) -> None:
        """Raise an error unless an estimator that was restored from a file can predict."""
        ...


class NetworkMethod(abc.ABC):
    """A method whose model is a network; its fits keep `model_` and `draw_key_`."""

    def __init__(self, network: NetworkConfig, dtype: str) -> None:
        """Keep the architecture and the float type of the computation."""
        self.network, self.dtype, self.input_scaling = network, dtype, network.input_scaling

    @abc.abstractmethod
    def check(self) -> None:
        """Raise where a parameter is not as expected."""

    @abc.abstractmethod
    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Fit, and return the attributes that the estimator keeps."""

    @property
    def noise_hold(self) -> float:
        """The part of training for which a learned noise is held at its start, unless the user says it."""
        return NOISE_HOLD

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return where a learned noise starts: small, so that the signal is learned first."""
        return np.full(targets.shape[1], START_NOISE)

    @abc.abstractmethod
    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return the weight model before training."""

    def initial_model(self, problem: Problem, seed: int) -> Model:
        """Return the model before training."""
        network = Dense((problem.x.shape[1], *self.network.hidden, problem.num_functions), self.network.activation)
        weights = self.initial_weights(network, problem, np.random.default_rng(seed))
        return Model(weights, network, problem.likelihood)

    @abc.abstractmethod
    def num_predict_draws(self, model: Model) -> int:
        """Return how many draws predictions mix."""

    def function_draws(self, fitted: Any, x_unit: np.ndarray) -> FunctionDraws:
        """Return the functions that predictions mix."""
        return NetworkDraws(fitted.model_, fitted.draw_key_, self.num_predict_draws(fitted.model_), x_unit)

    def joint_draws(self, fitted: Any, x_unit: np.ndarray, num_draws: int, key: np.ndarray) -> FunctionDraws:
        """Return functions that are coherent over the rows."""
        return NetworkDraws(fitted.model_, key, num_draws, x_unit, joint=True)

    def predictive(self, fitted: Any, x_unit: np.ndarray, targets: Targets) -> Predictive:
        """Return the mixture over draws of functions."""
        return targets.predictive(self.function_draws(fitted, x_unit))

    def sampled(self, fitted: Any, x_unit: np.ndarray, targets: Targets, n_samples: int, seed: int) -> np.ndarray:
        """Return functions drawn from the posterior."""
        key = np.array([seed, 1], np.uint32)
        return targets.predictive(self.joint_draws(fitted, x_unit, n_samples, key)).draws()

    def check_fitted(self, fitted: Any, num_features: int, targets: Targets) -> None:
        """Raise an error unless the prediction of one row can be computed, by a trial for shapes alone."""
        model, key = fitted.model_, fitted.draw_key_
        if not isinstance(model, Model):
            raise ValueError(f"model_: expected a Model; got a {type(model).__name__}")
        if not (isinstance(key, np.ndarray) and key.shape == (2,) and key.dtype == np.uint32):
            raise ValueError("draw_key_: expected two numbers of type uint32")
        draws = self.function_draws(fitted, np.zeros((1, num_features)))
        targets.check_model(model.likelihood, draws.num_outputs())

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute in the method's float type, with the compilation cache on."""
        drop_programs_when_many()
        with compilation_cache(), one_blas_thread(), jax.enable_x64(self.dtype == "float64"):
            yield


class Job(NamedTuple):
    """One fit: the model before it, the phases to come, its data, the rule that may end it, and its seed."""

    model: Model
    phases: Sequence[Phase]
    data: Data
    stop_when: StopRule | None
    seed: int


class Start(NamedTuple):
    """Where a fit begins: the method and the job to go on with, what was trained before, and what that has found."""

    method: "TrainedMethod"
    job: Job
    before: Sequence[Fit] = ()
    found: Mapping[str, Any] = {}
    #: What tells fits of one method apart that cannot go on side by side.
    kind: str = ""

    def attributes(self, fit: Fit, problem: Problem, seed: int) -> dict[str, Any]:
        """Return what the estimator keeps once the job has ended."""
        whole = joined_fits([*self.before, fit])._replace(converged=fit.converged)
        return {**self.method.attributes(whole, problem, seed), **self.found}


class TrainedMethod(NetworkMethod):
    """A method that trains a network by its ELBO."""

    def __init__(
        self, network: NetworkConfig, training: TrainingConfig, draws: DrawsConfig = ONE_DRAW, dtype: str | None = None
    ) -> None:
        """Keep the architecture, how it is trained, and how often its posterior is drawn from."""
        super().__init__(network, training.dtype if dtype is None else dtype)
        self.training, self.draws = training, draws

    def check(self) -> None:
        """Raise where a parameter of the network or its training is not as expected."""
        self.network.check()
        self.training.check()
        if self.draws is not ONE_DRAW:
            self.draws.check()

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Train a new model, or go on with the last."""
        start = self.start(problem, seed, checkpoint)
        return start.attributes(start.method.train(start.job, problem, checkpoint), problem, seed)

    def start(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> Start:
        """Return where a fit begins."""
        return Start(self, self.job(problem, seed))

    def attributes(self, fit: Fit, problem: Problem, seed: int) -> dict[str, Any]:
        """Return the result as NumPy arrays: it pickles, and nothing of it lives on a device."""
        return {
            "model_": as_numpy(fit.model),
            "draw_key_": np.array([seed, 0], np.uint32),
            "n_iter_": fit.num_steps,
            "elbo_history_": fit.history["elbo"],
            "elbo_terms_": {name: values for name, values in fit.history.items() if name != "elbo"},
            "converged_": bool(fit.converged),
            "n_roll_backs_": int(fit.roll_backs),
            "jitter_": float(fit.jitter),
        }

    def job(self, problem: Problem, seed: int, model: Model | None = None) -> Job:
        """Return all that training needs: a model to start from (the problem's, or a new one), phases and data."""
        model = model or problem.last or self.initial_model(problem, seed)
        with self.computing():
            return Job(model, self.phases(model, problem, seed), *self.split(problem, seed), seed)

    def train(self, job: Job, problem: Problem, checkpoint: CheckpointConfig | None = None) -> Fit:
        """Train phase after phase; each of several keeps its checkpoints in a folder of its own."""
        model, fits, step = job.model, list[Fit](), self.step_config(problem)
        with self.computing():
            for number, phase in enumerate(job.phases, 1):
                (model,) = phase.ready([fits[-1].model if fits else model], [job.data])
                own = checkpoint
                if checkpoint is not None and number < len(job.phases):
                    own = checkpoint.inside(f"phase{number}")
                own_step = phase.step_config(step, problem.num_rows)
                fit = self._train_phase(phase, job._replace(model=model), own_step, own)
                fits.append(fit._replace(model=phase.ended(fit.model)))
        return self.with_rows(joined_fits(fits), job.data)

    def _train_phase(self, phase: Phase, job: Job, step: StepConfig, checkpoint: CheckpointConfig | None) -> Fit:
        with progress_bar(self.training.verbose) as listener:
            return train(
                job.model,
                job.data,
                make_key(job.seed),
                recipe=phase.recipe,
                step_config=step,
                optimizer=self.training.optimizer,
                listener=listener,
                stop_when=job.stop_when,
                mesh=self.training.mesh,
                checkpoint_store=checkpoint and Checkpoint(checkpoint),
                settling=phase.settling,
            )

    @property
    def is_one_run(self) -> bool:
        """Whether a fit is one run of training and nothing else, so that several can train side by side."""
        return True

    def recipe(self, problem: Problem) -> Recipe:
        """Return how training goes."""
        return Recipe(
            num_steps=int(self.training.max_iter),
            learning_rate=self.learning_rate(problem) if self.training.optimizer is None else 1.0,
            begins=0.0 if problem.last is None else WARM_BEGINS,
        )

    def learning_rate(self, problem: Problem) -> float:
        """Return Adam's step size."""
        return float(self.training.learning_rate_init)

    def batch_size(self, problem: Problem) -> int | None:
        """Return the rows of a step; None: all of them."""
        return self.training.rows_of_a_step(problem.num_rows)

    def step_config(self, problem: Problem) -> StepConfig:
        """Return how many rows and draws a step takes."""
        return StepConfig(self.batch_size(problem), int(self.draws.n_train_draws), 1)

    def num_predict_draws(self, model: Model) -> int:
        """Return how many draws predictions mix."""
        return int(self.draws.n_predict_draws)

    def settling(self, problem: Problem) -> Settling | None:
        """Return when training has converged; None: it takes `max_iter` steps."""
        return None

    def phases(self, model: Model, problem: Problem, seed: int) -> list[Phase]:
        """Return the phases of a fit, in their order."""
        return [usual_phase(self.recipe(problem), self.settling(problem))]

    def with_rows(self, fit: Fit, data: Data) -> Fit:
        """Return the fit with the rows that its predictions need: those of weights need none."""
        return fit

    def split(self, problem: Problem, seed: int) -> tuple[Data, StopRule | None]:
        """Return the data to train on and the rule that may end the run early."""
        training, num_rows = self.training, problem.num_rows

        def part(rows: np.ndarray | slice) -> Data:
            weight = None if problem.weight is None else problem.weight[rows]
            return make_data(problem.x_unit[rows], problem.targets[rows], weight, np.dtype(self.dtype).type)

        if not training.holds_out(num_rows):
            rule = FlatElbo(training.tol, training.n_iter_no_change, problem.total_weight) if training.tol > 0 else None
            return part(slice(None)), rule
        seen, held = hold_out(num_rows, training.validation_fraction, seed)
        data = part(seen)
        return data, HeldOutScore(training.tol, training.n_iter_no_change, part(held), make_key(seed), data)
