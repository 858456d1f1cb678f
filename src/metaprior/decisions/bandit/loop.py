"""The bandit: ask for an arm given a context, tell its reward, and repeat.

The reward model is one regressor on the context and the one-hot arm. So arms share what they have in common, and one
draw scores all arms of a context. It is refitted every `refit_every` rounds, afresh when the rounds have doubled and
warm in between (`metaprior.decisions.warm_start`). Before the first fit, arms are chosen at random.
"""

import os
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.spatial.distance import pdist

from metaprior import kernels
from metaprior.decisions.bandit.environment import Environment
from metaprior.decisions.bandit.policies import POLICIES, model_rows, uniform
from metaprior.decisions.bandit.rounds import Rounds
from metaprior.decisions.base import Loop, one_at_a_time
from metaprior.decisions.warm_start import WarmStartedModel, expect_warm_iter
from metaprior.estimators import MetaGPRegressor
from metaprior.estimators.checks import expect, is_number, is_whole
from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.io.renamed import LOOP_PARAMETERS

if TYPE_CHECKING:
    import pandas as pd

#: The default model: hidden units, steps of a fresh fit and of a warm one, and rows and draws per step.
HIDDEN, FIRST_ITER, WARM_ITER, BATCH_SIZE, N_TRAIN_DRAWS = (20,), 300, 100, 128, 2
#: The lengthscale on one-hot arms. They lie sqrt(2) apart, so one arm tells little about another.
ARM_LENGTHSCALE = 0.5
#: The most arms. Each is a column of the model and a row for every context, so memory grows with their square.
MOST_ARMS = 10_000
#: The default `spread`: the best of 1, 0.5, 0.25 and 0.1 on tables that no report uses.
SPREAD = 0.5
#: The most contexts that the median distance is computed from.
MAX_ROWS = 200


@accepts_old_keywords(LOOP_PARAMETERS)
def default_reward_model(contexts: np.ndarray, n_arms: int) -> MetaGPRegressor:
    """Return the default reward model: similar contexts give similar rewards, for every arm.

    It is MetaGP-local, with an RBF input kernel on the context times a short one on the arm. The lengthscale on the
    context starts at the median distance between the given contexts. In many dimensions all contexts are far apart, and
    with a lengthscale of one standard deviation none would be similar.

    Parameters
    ----------
    contexts : ndarray of shape (n, n_features)
        Examples of contexts.
    n_arms : int
    """
    n_features = contexts.shape[1]
    distance = float(np.median(pdist(contexts[:MAX_ROWS]))) if len(contexts) > 1 else 0.0
    of_context = kernels.RBF(distance if distance > 0 else 1.0).on(*range(n_features))
    of_arm = kernels.RBF(ARM_LENGTHSCALE).on(*range(n_features, n_features + n_arms))
    return MetaGPRegressor(
        HIDDEN,
        input_kernel=of_context * of_arm,
        max_iter=FIRST_ITER,
        batch_size=BATCH_SIZE,
        n_train_draws=N_TRAIN_DRAWS,
    )


class PendingRounds(NamedTuple):
    """The contexts and the chosen arms of rounds whose rewards have not been told yet."""

    contexts: np.ndarray
    arms: np.ndarray


class Bandit(Loop[Rounds]):
    """A contextual bandit: choose an arm for every context, and learn from the rewards.

    Parameters
    ----------
    n_arms : int
        Number of arms, at most 10,000; they are called 0, ..., n_arms - 1.
    estimator : estimator, default=None
        Model of the reward given [context, one-hot arm]: a regressor of this library, or a scikit-learn regressor,
        which needs `sample_y` for "thompson". None means `default_reward_model` for the first contexts.
    policy : {"thompson", "greedy", "epsilon_greedy", "uniform"}, default="thompson"
    epsilon : float, default=0.1
        Fraction of the rounds in which "epsilon_greedy" chooses at random.
    spread : float, default=0.5
        Factor by which "thompson" scales drawn functions around their mean: 1 is the posterior, less explores less.
    refit_every : int, default=50
        Number of rounds between two fits. Before the first fit the arms are chosen at random.
    warm_iter : int or None, default=100
        Number of steps of a fit that continues from the last one. None means 0.3 of the estimator's `max_iter`.
    random_state : int, default=None
        Seed of the choices and of the fits. An estimator whose own `random_state` is an integer keeps it. None draws a
        seed, which the attribute `random_state` and the file then hold.
    path : str or path, default=None
        File to which the loop is saved after every call. It must not exist yet; `Bandit.load` resumes from a file.

    Attributes
    ----------
    path : Path or None
        Can be set to save elsewhere from the next call on.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior.decisions import Bandit
    >>> bandit = Bandit(n_arms=2, policy="uniform", random_state=0)
    >>> arm = bandit.ask(np.array([0.3, -1.2]))
    >>> bandit.tell(1.0)
    >>> bandit.n_observed
    1
    """

    kind = "bandit"
    setting_names = ("n_arms", "policy", "epsilon", "spread", "refit_every", "warm_iter", "random_state")

    @accepts_old_keywords(LOOP_PARAMETERS)
    def __init__(
        self,
        n_arms: int,
        *,
        estimator: Any = None,
        policy: str = "thompson",
        epsilon: float = 0.1,
        spread: float = SPREAD,
        refit_every: int = 50,
        warm_iter: int | None = WARM_ITER,
        random_state: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        for name, value, lowest in [("n_arms", n_arms, 2), ("refit_every", refit_every, 1)]:
            expect(name, value, f"a whole number of at least {lowest}", is_whole(value) and value >= lowest)
        expect("n_arms", n_arms, f"at most {MOST_ARMS} arms", n_arms <= MOST_ARMS)
        expect_warm_iter(warm_iter)
        expect("policy", policy, f"one of {tuple(POLICIES)}", policy in POLICIES)
        expect("epsilon", epsilon, "a number between 0 and 1", is_number(epsilon) and 0 <= epsilon <= 1)
        expect("spread", spread, "a number of at least 0", is_number(spread) and spread >= 0)
        super().__init__(None if estimator is None else WarmStartedModel(estimator, warm_iter), random_state, path)
        self.n_arms, self.policy, self.epsilon, self.spread = int(n_arms), policy, float(epsilon), float(spread)
        self.refit_every, self.warm_iter = int(refit_every), warm_iter
        self._commit(Rounds())

    # --- arms and rewards ------------------------------------------------------------

    @one_at_a_time
    def ask(self, contexts: Any) -> Any:
        """Return the arm for one context (a vector), or the arms for several [n, n_features].

        Tell the rewards before asking about other contexts. Asking again about the same ones gives the same arms.

        Returns
        -------
        int, or ndarray of shape (n,)
        """
        array = np.array(contexts, np.float64)
        rows = self._checked(array[None] if array.ndim == 1 else array)
        if not len(self.pending.arms):
            arms, model = self._chosen(rows)
            self._commit(self._state.with_choices(rows, arms), model)
        elif not np.array_equal(rows, self.pending.contexts):
            raise ValueError(
                f"ask: the rewards of {len(self.pending.arms)} rounds are pending (see `pending`); tell them before "
                "asking about other contexts."
            )
        arms = self.pending.arms
        return int(arms[0]) if array.ndim == 1 else arms.copy()

    @one_at_a_time
    def tell(self, y: Any, regrets: Any = None) -> None:
        """Add the rewards of the pending rounds.

        Parameters
        ----------
        y : float or array-like of shape (n,)
            The rewards, in the order of the rounds.
        regrets : float or array-like of shape (n,), default=None
            How much more the best arm would have given than the chosen one, if that is known (in a simulation).
        """
        rewards = self._numbers(y, "rewards")
        lost = np.full(len(rewards), np.nan) if regrets is None else self._numbers(regrets, "regrets")
        self._commit(self._state.with_rewards(rewards, lost))

    @accepts_old_keywords(LOOP_PARAMETERS)
    def run(self, source: Environment, n_observations: int, *, verbose: bool = False) -> Self:
        """Play until the rewards of `n_observations` rounds are told, including earlier ones.

        Rounds between two fits are played together, because nothing is learned in between. The regret of a round is the
        expected reward of the best arm less that of the chosen one.

        Parameters
        ----------
        source : Environment
            The simulation that gives contexts and rewards.
        n_observations : int
            The total number of rounds.
        verbose : bool, default=False
            Show a progress bar on stderr.

        Returns
        -------
        self
        """
        return super().run(source, n_observations, verbose=verbose)

    def _play_round(self, source: Environment, n_left: int) -> None:
        """Play the pending rounds, or those up to the next fit."""
        to_next_fit = self.refit_every - self.n_observed % self.refit_every
        rounds = self.n_observed + np.arange(len(self.pending.arms) or min(to_next_fit, n_left))
        arms = self.ask(source.contexts(rounds))
        expected = source.expected(rounds)
        regrets = expected.max(axis=1) - expected[np.arange(len(arms)), arms]
        self.tell(source.rewards(rounds, arms), regrets)

    def _summary(self) -> str:
        return f"regret {np.sum(self.regrets):.0f}"

    def _checked(self, rows: np.ndarray) -> np.ndarray:
        width = self.contexts.shape[1] if self.n_observed else rows.shape[-1]
        if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
            raise ValueError(f"ask: expected contexts of {width} numbers; got an array of shape {rows.shape}.")
        if not np.all(np.isfinite(rows)):
            raise ValueError("ask: expected finite numbers in the contexts; got NaN or infinite ones.")
        return rows

    def _numbers(self, values: Any, name: str) -> np.ndarray:
        array, count = np.atleast_1d(np.asarray(values, np.float64)), len(self.pending.arms)
        if not count:
            raise ValueError("tell: no reward is pending; ask for an arm first.")
        if array.shape != (count,) or not np.all(np.isfinite(array)):
            raise ValueError(f"tell: expected {count} finite {name}, one per pending round; got {values!r}.")
        return array

    def _chosen(self, contexts: np.ndarray) -> tuple[np.ndarray, WarmStartedModel | None]:
        """Return the arms of new rounds, and the model that chose them."""
        rng = np.random.default_rng([self.random_state, 1, self.n_observed])
        n_fitted = self.n_observed // self.refit_every * self.refit_every
        if not n_fitted or self.policy == "uniform":
            return np.argmax(uniform(None, contexts, self.n_arms, rng), axis=1), self._model
        model, policy = self._fitted(n_fitted), POLICIES[self.policy](self.epsilon, self.spread)
        return np.argmax(policy(model.fitted, contexts, self.n_arms, rng), axis=1), model

    def _fitted(self, n_rounds: int) -> WarmStartedModel:
        """Return the model fitted to the first `n_rounds` rounds."""
        model = self._model
        if model is None:
            first = self.contexts[: self.refit_every]
            model = WarmStartedModel(default_reward_model(first, self.n_arms), self.warm_iter)
        rows = model_rows(self.contexts[:n_rounds], self.arms[:n_rounds], self.n_arms)
        return model.refitted(rows, self.rewards[:n_rounds], self._fit_seed(n_rounds))

    # --- results -----------------------------------------------------------------------

    @property
    def contexts(self) -> np.ndarray:
        """The contexts of the rounds whose rewards were told."""
        return self._state.contexts

    @property
    def arms(self) -> np.ndarray:
        """The arms of the rounds whose rewards were told."""
        return self._state.arms

    @property
    def rewards(self) -> np.ndarray:
        """The rewards that were told."""
        return self._state.rewards

    @property
    def regrets(self) -> np.ndarray:
        """The regrets of the rounds whose rewards were told, NaN if unknown."""
        return self._state.regrets

    @property
    def pending(self) -> PendingRounds:
        """The rounds whose rewards have not been told yet."""
        rounds = self._state
        return PendingRounds(rounds.pending_contexts, rounds.pending_arms)

    @property
    def n_observed(self) -> int:
        """The number of rewards that were told."""
        return len(self.rewards)

    @property
    def history(self) -> "pd.DataFrame":
        """One row per round, in the order in which the rewards were told; needs pandas.

        The columns are the number of the `observation`, the `arm`, the `reward`, the `regret` and the
        `cumulative_regret` (NaN if unknown).
        """
        return super().history

    def _history_columns(self) -> dict[str, Any]:
        told = self._state
        return {
            "observation": np.arange(1, len(told.rewards) + 1),
            "arm": told.arms,
            "reward": told.rewards,
            "regret": told.regrets,
            "cumulative_regret": np.cumsum(told.regrets),
        }

    # --- files -------------------------------------------------------------------------

    @classmethod
    def _from_settings(cls, settings: dict[str, Any], model: WarmStartedModel | None) -> Self:
        return cls(**settings, estimator=None if model is None else model.template)

    def _checked_state(self, fields: Any) -> Rounds:
        return Rounds.checked(fields, self.n_arms)

    def _data_shape(self) -> tuple[int, int]:
        return self.n_observed, self.contexts.shape[1] + self.n_arms
