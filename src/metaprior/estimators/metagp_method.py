"""How a MetaGP is started, trained and asked: with its output layer integrated out, or with every weight drawn."""

import dataclasses
from typing import Any

import numpy as np

from metaprior.estimators.candidates import Candidate, candidates_for
from metaprior.estimators.config import NetworkConfig, TrainingConfig, is_auto
from metaprior.estimators.data_kernel import Standardised
from metaprior.estimators.kernel_search import Search, check_table, goes_on, goes_on_alone, search, search_phase
from metaprior.estimators.many import train_together
from metaprior.estimators.metagp_config import MetaGPConfig
from metaprior.estimators.metagp_prior import initial_weights, warn_of_far_codes
from metaprior.estimators.method import Problem, Start, TrainedMethod
from metaprior.estimators.phases import (
    COARSE_BATCH,
    COARSE_FROM,
    COARSE_ROWS,
    Phase,
    coarse_phase,
    exact_phase,
    fine_phase,
)
from metaprior.estimators.regime import EXACT_MOST, ROWS_JITTER, chosen_regime, initial_output
from metaprior.estimators.targets import Targets
from metaprior.hypers import HyperPosterior, HyperPosteriorOfChosen
from metaprior.inference import ALL_AT_ONCE, Batch, Data, Fit, Recipe, Settling, StepConfig
from metaprior.io.checkpoints import CheckpointConfig
from metaprior.kernels import Kernel
from metaprior.likelihoods.gaussian import NOISE_HOLD
from metaprior.model import Model, release_times
from metaprior.networks import Dense
from metaprior.output_layer import Exact, InducingRows
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.integrated import FUNCTIONS_PER_DRAW, IntegratedDraws
from metaprior.random import make_key
from metaprior.weights import WeightModel, metagp_of

#: The part of training for which the noise is held where an input kernel carries the signal and every weight is drawn.
#: Such a model finds it early, and noise that is let in late is not learned in full: with the usual 0.8 in place of 0.5
#: the negative log density of noisy data (a sine in noise of its own size, the diabetes table) is 0.7 nats worse, and
#: no better for clean data.
LOCAL_NOISE_HOLD = 0.5
#: Rows up to which hyper-parameters have a posterior and are no point estimates: with Gaussian noise, and with other
#: likelihoods, whose rows say less. On 100 rows of four classes a point estimate takes one column for irrelevant, and
#: the entropy on a far ring is 0.949 of its maximum; with a posterior it is 0.999.
FEW_ROWS, FEW_LABELS = 50, 500
#: Adam's step size, and those where the output layer is integrated and a step sees all rows: of a new fit of a global
#: layer, and of other fits. A global layer ends with a higher bound with 0.2 than with 0.1 on 9 of 15 tables that no
#: report scores, in as many steps. A local one takes fewer steps with 0.2, but is stuck more often.
RATE, GLOBAL_RATE, LOCAL_RATE = 0.02, 0.2, 0.1
#: Draws of the latents in a step: where every weight is drawn, and where the output layer is integrated.
DRAWN_DRAWS, INTEGRATED_DRAWS = 4, 1
#: Noise at the start where the output layer is integrated: nothing need be held, so the start is merely sensible.
INTEGRATED_START_NOISE = 0.3


class MetaGPMethod(TrainedMethod):
    """A network whose weight prior is a GP; `likelihood` is that of a regressor, None for classes."""

    def __init__(
        self,
        config: MetaGPConfig,
        network: NetworkConfig,
        training: TrainingConfig,
        likelihood: str | None,
        spent: int = 0,
    ) -> None:
        """Keep the parameters; `spent` steps of `max_iter` have been made."""
        network.check()
        self.likelihood, self.spent = likelihood, spent
        self.is_integrated = config.is_integrated(network.num_layers)
        # the bound that draws every weight does not tell a kernel that explains the data from one that does not
        self.config = config if self.is_integrated or not config.is_automatic else config.with_kernel(None)
        super().__init__(network, training, dtype=self._float_type(training.dtype))

    def with_kernel(self, kernel: Kernel | Standardised | None, spent: int = 0) -> "MetaGPMethod":
        """Return the same method with another input kernel."""
        return MetaGPMethod(self.config.with_kernel(kernel), self.network, self.training, self.likelihood, spent)

    def with_candidate(self, candidate: Candidate, kernel: Kernel | None, spent: int = 0) -> "MetaGPMethod":
        """Return the same method with a kernel of a candidate, and its projection of the inputs."""
        config = self.config.with_kernel(None if kernel is None else Standardised(kernel), candidate.projection)
        return MetaGPMethod(config, self.network, self.training, self.likelihood, spent)

    def _float_type(self, asked: str) -> str:
        if asked != "auto":
            return asked
        return "float64" if self.is_integrated and self.has_gaussian_noise else "float32"

    @property
    def has_gaussian_noise(self) -> bool:
        """Whether targets have Gaussian noise, so that an integrated output layer has a closed form."""
        return self.likelihood == "gaussian"

    def check(self) -> None:
        """Raise where a parameter is not as expected."""
        self.network.check()
        self.training.check(auto_rate=True, auto_dtype=True)
        self.config.check(self.network.num_layers)

    # --- the model before training ---------------------------------------------------

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return the MetaGP, alone or beside layers that are mean-field."""
        classes = self.likelihood is None
        return initial_weights(self.config, network, problem, self.dtype, rng, classes=classes)

    def initial_model(self, problem: Problem, seed: int) -> Model:
        """Return the model, with the regime of its output layer and, for few rows, uncertain hyper-parameters."""
        model = super().initial_model(problem, seed)
        if not self.is_integrated:
            return model
        regime = self.regime(problem)
        rng = np.random.default_rng([seed, 2])
        separable = metagp_of(model.weights).has_separable_output
        output = initial_output(regime, problem, self.config.n_inducing_rows, ROWS_JITTER[self.dtype], rng, separable)
        model = dataclasses.replace(model, output=output)
        if not self._has_uncertain_hypers(problem.num_rows):
            return model
        return dataclasses.replace(model, hypers=HyperPosterior.initial(model, release_times(model)))

    def regime(self, problem: Problem) -> str:
        """Return the regime of the output layer; one that sees rows in batches where a size of them is asked for."""
        asked, num_rows = self.config.output_layer, problem.num_rows
        in_batches = self.training.batch_size != "auto" and int(self.training.batch_size) < num_rows
        if asked == "auto" and in_batches:
            return "pseudo_observations"
        regime = chosen_regime(asked, self.has_gaussian_noise, num_rows, self._exact_size(problem))
        if in_batches and regime != "pseudo_observations":
            raise ValueError(
                f"batch_size: expected 'auto' or at least the {num_rows} rows with output_layer={regime!r}, which sees "
                f"all rows at every step; got {self.training.batch_size}. Take output_layer='pseudo_observations' for "
                "batches."
            )
        return regime

    def _exact_size(self, problem: Problem) -> int:
        """Return the size of the matrix that the exact regime factors: no larger than that of a global layer."""
        is_local = self.config.has_local_output(self.network.num_layers)
        num_units = self.network.hidden[-1] + 1 if self.network.hidden else problem.x.shape[1] + 1
        return problem.num_functions * (problem.num_rows if is_local else min(num_units, problem.num_rows))

    def _has_uncertain_hypers(self, num_rows: int) -> bool:
        if is_auto(self.config.uncertain_hypers):
            return num_rows <= (FEW_ROWS if self.has_gaussian_noise else FEW_LABELS)
        return bool(self.config.uncertain_hypers)

    @property
    def noise_hold(self) -> float:
        """No part of training where the output layer is integrated; most of it where every weight is drawn."""
        if self.is_integrated:
            return 0.0
        return NOISE_HOLD if self.config.input_kernel is None else LOCAL_NOISE_HOLD

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return where a learned noise starts."""
        if not self.is_integrated:
            return super().start_noise(x, targets, hold)
        return np.full(targets.shape[1], INTEGRATED_START_NOISE)

    # --- training --------------------------------------------------------------------

    @property
    def is_one_run(self) -> bool:
        """Whether there are no restarts."""
        return int(self.config.n_restarts) == 0

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Train from one start, or from several side by side and keep the one with the highest ELBO."""
        if self.is_one_run or problem.last is not None:
            return super().fit(problem, seed, checkpoint)
        if checkpoint is not None:
            raise ValueError("checkpoint: expected n_restarts=0; several runs side by side are not kept.")
        decided = self._decided(problem)
        if decided is not self:
            return decided.fit(problem, seed)
        if self.config.is_automatic:
            found = self._search(problem, seed, None)
            fitted = self._taken(found.taken.candidate).fit(problem, seed)
            return {**fitted, "_kernel_search": found.table()}
        starts = [problem._replace(start=start) for start in range(1 + int(self.config.n_restarts))]
        jobs = [self.job(own, seed + own.start) for own in starts]
        fits = train_together(self, jobs, starts)
        best = int(np.argmax([np.mean(fit.history["elbo"][-len(fit.history["elbo"]) // 10 :]) for fit in fits]))
        return self.attributes(fits[best], problem, jobs[best].seed)

    def start(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> Start:
        """Return where a fit begins: with "auto", where the candidate that the bound prefers has come to."""
        decided = self._decided(problem)
        if not decided.config.is_automatic:
            return Start(decided, decided.job(problem, seed))
        found = self._search(problem, seed, checkpoint)
        told = {"_kernel_search": found.table()}
        candidate, fit = found.taken.candidate, found.taken.fit
        if candidate.begins_anew:
            method = self._taken(candidate)
            return Start(method, method.job(problem, seed), found=told, kind=candidate.kind)
        method = self._taken(candidate, fit.num_steps)
        job = method.job(problem, seed)
        is_short = len(job.phases) > 1 or problem.num_rows < COARSE_FROM
        first = goes_on(job.phases[0], candidate) if is_short else goes_on_alone(job.phases[0], candidate)
        job = job._replace(model=fit.model, phases=[first, *job.phases[1:]])
        return Start(method, job, [fit], told, f"{candidate.kind} in {len(job.phases)}")

    def _taken(self, candidate: Candidate, spent: int = 0) -> "MetaGPMethod":
        """Return the method with the kernel that a search has taken."""
        return self.with_candidate(candidate, None if candidate.is_global else candidate.start, spent)

    def _decided(self, problem: Problem) -> "MetaGPMethod":
        """Return the method with its kernel where "auto" has nothing to choose.

        A fit that goes on keeps the kernel of the last. Of more rows than the exact regime can factor for a local
        layer, a user who asks for that regime means the global model.
        """
        if not self.config.is_automatic:
            return self
        if problem.last is not None:
            kernel = metagp_of(problem.last.weights).input_kernel
            return self.with_kernel(None if kernel is None else Standardised(kernel))
        is_global = self.config.output_layer == "exact" and self._exact_size(problem) > EXACT_MOST
        return self.with_kernel(None) if is_global else self

    def _search(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None) -> Search:
        """Train the candidates for the input kernel, and take one."""
        candidates = candidates_for(problem, self.config.projection())
        joint = self.with_candidate(candidates[0], candidates[0].joint)
        base, step = joint.job(problem, seed), joint.step_config(problem)
        phase, own_step = search_phase(base.phases[0]), base.phases[0].step_config(step, problem.num_rows)

        def start(candidate: Candidate) -> Model:
            model = self.with_candidate(candidate, candidate.joint).initial_model(problem, seed)
            (ready,) = phase.ready([model], [base.data])
            if ready.hypers is None:
                return ready
            return dataclasses.replace(ready, hypers=HyperPosteriorOfChosen.of(ready.hypers, ready))

        def train_for(model: Model, num_steps: int, name: str) -> Fit:
            recipe = phase.recipe._replace(num_steps=num_steps)
            job = base._replace(model=model, stop_when=None)
            with self.computing():
                own = checkpoint and checkpoint.inside(name)
                return self._train_phase(phase._replace(recipe=recipe), job, own_step, own)

        return search(candidates, start, train_for, int(self.training.max_iter), problem.num_rows)

    def attributes(self, fit: Fit, problem: Problem, seed: int) -> dict[str, Any]:
        """Return what the estimator keeps, the fitted input kernel in the units of the data among it."""
        attributes = super().attributes(fit, problem, seed)
        weights = metagp_of(attributes["model_"].weights)
        kernel, projected = weights.input_kernel, bool(weights.input_map.means)
        in_data_units = (
            kernel if kernel is None or projected else kernel.unstandardised(problem.x_scale).with_names(problem.names)
        )
        warn_of_far_codes(weights)
        return {**attributes, "input_kernel_": in_data_units}

    def batch_size(self, problem: Problem) -> int | None:
        """Return the rows of a step; a fit that goes on keeps the regime that it has."""
        if problem.last is not None:
            takes_all = problem.last.output is not None and problem.last.output.takes_all_rows
        else:
            takes_all = self.is_integrated and self.regime(problem) != "pseudo_observations"
        return None if takes_all else super().batch_size(problem)

    def step_config(self, problem: Problem) -> StepConfig:
        """Return how many rows and draws a step takes."""
        usual, asked = INTEGRATED_DRAWS if self.is_integrated else DRAWN_DRAWS, self.config.n_train_draws
        return StepConfig(self.batch_size(problem), usual if asked == "auto" else int(asked), self._weight_draws)

    @property
    def _weight_draws(self) -> int:
        return int(self.config.n_weight_draws)

    def learning_rate(self, problem: Problem) -> float:
        """Return Adam's step size."""
        asked = self.training.learning_rate_init
        if not is_auto(asked):
            return float(asked)
        if not self.is_integrated or self.batch_size(problem) is not None:
            return RATE
        is_local = self.config.has_local_output(self.network.num_layers)
        return LOCAL_RATE if is_local or problem.last is not None else GLOBAL_RATE

    def recipe(self, problem: Problem) -> Recipe:
        """Return how training goes: in the paper's order where every weight is drawn, all at once else."""
        recipe = super().recipe(problem)
        recipe = recipe._replace(num_steps=max(int(self.training.max_iter) - self.spent, min(1, self.spent)))
        return recipe._replace(**ALL_AT_ONCE) if self.is_integrated else recipe

    def settling(self, problem: Problem) -> Settling | None:
        """Return when training has converged: when an integrated bound is flat, unless another rule ends the run."""
        if not self.is_integrated or self.training.tol > 0 or self.training.early_stopping:
            return None
        usual, batch = Settling(), self.batch_size(problem)
        # in batches the bound is noisy: a look at it is a pass through the rows, or more
        return usual if batch is None else usual._replace(window=max(usual.window, -(-problem.num_rows // batch)))

    def phases(self, model: Model, problem: Problem, seed: int) -> list[Phase]:
        """Return the usual phase; or, for a layer that sees many rows at every step, a coarse and a fine one."""
        (usual,) = super().phases(model, problem, seed)
        output, jitter = model.output, ROWS_JITTER[self.dtype]
        # what ends a run by other rules is one run
        is_free = usual.settling is not None and self.training.optimizer is None
        if not is_free or not isinstance(output, Exact | InducingRows):
            return [usual]
        is_warm = problem.last is not None
        if not self.config.has_local_output(self.network.num_layers):
            is_many = problem.num_rows > COARSE_BATCH and not is_warm
            return [coarse_phase(usual, output), fine_phase(usual, output)] if is_many else [usual]
        if self._exact_size(problem) < COARSE_FROM:
            return [usual]
        last = usual if is_warm else fine_phase(usual, output)
        if isinstance(output, Exact):
            last = exact_phase(last, make_key(seed), jitter)
        if is_warm:
            return [last]
        rng = np.random.default_rng([seed, 2])
        coarse = initial_output("inducing_rows", problem, COARSE_ROWS, jitter, rng, separable=False)
        return [coarse_phase(usual, coarse), last]

    def with_rows(self, fit: Fit, data: Data) -> Fit:
        """Return the fit with the rows that an integrated output layer is conditioned on."""
        if fit.model.output is None:
            return fit
        output = fit.model.output.with_rows(Batch(data.x, data.y, data.weight))
        return fit._replace(model=dataclasses.replace(fit.model, output=output))

    def check_fitted(self, fitted: Any, num_features: int, targets: Targets) -> None:
        """Raise an error unless a restored estimator can predict, and tells of its kernel what a fit does."""
        super().check_fitted(fitted, num_features, targets)
        columns = vars(fitted).get("_kernel_search")
        if columns is not None:
            check_table(columns)

    # --- prediction ------------------------------------------------------------------

    def num_predict_draws(self, model: Model) -> int:
        """Return how many functions predictions draw."""
        return int(self.config.n_predict_draws)

    def function_draws(self, fitted: Any, x_unit: np.ndarray) -> FunctionDraws:
        """Return the functions that predictions mix."""
        if fitted.model_.output is None:
            return super().function_draws(fitted, x_unit)
        return self._integrated(fitted, x_unit, self.num_predict_draws(fitted.model_), fitted.draw_key_)

    def joint_draws(self, fitted: Any, x_unit: np.ndarray, num_draws: int, key: np.ndarray) -> FunctionDraws:
        """Return functions that are coherent over the rows."""
        if fitted.model_.output is None:
            return super().joint_draws(fitted, x_unit, num_draws, key)
        return self._integrated(fitted, x_unit, num_draws, key).coherent()

    def _integrated(self, fitted: Any, x_unit: np.ndarray, num_draws: int, key: np.ndarray) -> IntegratedDraws:
        num_below = max(1, int(self.config.n_predict_draws) // FUNCTIONS_PER_DRAW)
        return IntegratedDraws(fitted.model_, fitted.draw_key_, num_below, key, num_draws, x_unit)
