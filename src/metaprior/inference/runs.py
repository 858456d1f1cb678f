"""The record of one run of training: its key, its history, how often it was rolled back, and how it ended."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from metaprior.inference.rules import History, StopRule
from metaprior.model import Model
from metaprior.user_warnings import warn_user
from metaprior.weights import WeightModel

#: How often a run may turn non-finite before it is given up.
MAX_ROLL_BACKS = 8


class ConvergenceTrouble(UserWarning):
    """A run met a numerical difficulty and dealt with it."""


class Progress(NamedTuple):
    """What a listener is told after each block of steps."""

    step: int
    num_steps: int
    terms: dict[str, float]
    seconds: float


Listener = Callable[[Progress], None]


class Fit(NamedTuple):
    """The end of a run: the model, the terms of every step, and what happened on the way."""

    model: Model
    history: History
    num_steps: int
    roll_backs: int
    jitter: float
    converged: bool


@dataclasses.dataclass
class Run:
    """A run so far; `blocks` holds the terms of every block of steps."""

    key: Key[Array, ""]
    stop_rule: StopRule | None = None
    backoff: float = 1.0
    roll_backs: int = 0
    blocks: list[History] = dataclasses.field(default_factory=list)
    ended: Fit | None = None

    def history(self) -> History:
        """Return every term as one array over steps, the ELBO (with its KL in full) among them."""
        if not self.blocks:
            return {"jitter": np.zeros(0), "elbo": np.zeros(0)}
        terms = {name: np.concatenate([block[name] for block in self.blocks]) for name in self.blocks[0]}
        total = sum(value for name, value in terms.items() if name.startswith("kl_"))
        return {**terms, "elbo": terms["log_likelihood"] - total}

    def roll_back(self, step: int) -> None:
        """Go on from the last good state with half the step and other normals; give up where that does not help."""
        self.roll_backs, self.backoff = self.roll_backs + 1, self.backoff / 2
        _warn_of_roll_back(step, self.backoff, self.roll_backs)
        self.key = jax.random.fold_in(self.key, self.roll_backs)

    def end(self, last: Model, *, converged: bool) -> None:
        """End with the best model that the rule has seen, or else with the last."""
        best = None if self.stop_rule is None else self.stop_rule.best_model
        model, terms = last if best is None else best, self.history()
        jitter = float(np.max(terms.pop("jitter"), initial=0.0))
        report_jitter(model.weights, jitter)
        self.ended = Fit(model, terms, len(terms["elbo"]), self.roll_backs, jitter, converged)


def _warn_of_roll_back(step: int, backoff: float, roll_backs: int) -> None:
    if roll_backs > MAX_ROLL_BACKS:
        raise FloatingPointError(
            f"training turned non-finite {roll_backs} times near step {step}, even with the step size cut to "
            f"{backoff:g} of its start; lower the learning rate (learning_rate_init), look for extreme values in "
            "the data, or take dtype='float64'."
        )
    warn_user(
        f"training turned non-finite after step {step}; going on from there with {backoff:g} of the step size. If "
        "n_roll_backs_ counts several, lower learning_rate_init, look for extreme values in X and y, or take "
        "dtype='float64'.",
        ConvergenceTrouble,
        once="non-finite",
    )


def report_jitter(weights: WeightModel, jitter: float) -> None:
    """Warn where a factor took more jitter than it starts with."""
    if jitter > 1.5 * weights.start_jitter:
        warn_user(
            f"a Cholesky factor needed a relative jitter of {jitter:g} (usual: {weights.start_jitter:g}); codes or "
            "inputs may coincide: lower n_inducing (or n_inducing_rows), or take dtype='float64'.",
            ConvergenceTrouble,
            once="jitter",
        )
