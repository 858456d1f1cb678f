"""The loop: ask for an arm at a context, tell its reward; kept in a file after every call.

The model of rewards is one regressor on the context and the one-hot arm: arms share what they have in common, and one
draw of it decides all arms at a context. It is fitted every `refit_every` rounds, afresh when they have doubled and
warm in between (`metaprior.decisions.warm_start`); before the first fit arms are chosen at random.
"""

import os
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.spatial.distance import pdist

from metaprior import kernels
from metaprior.bandit.policies import POLICIES, model_rows
from metaprior.decisions.records import history_frame, read_loop, refuse_to_replace, write_loop
from metaprior.decisions.warm_start import RefittedModel
from metaprior.estimators import MetaGPRegressor
from metaprior.estimators.checks import expect, is_number, is_whole

if TYPE_CHECKING:
    import pandas as pd

#: The usual model: hidden units, steps of fresh fits and of those that go on, rows and draws of a step.
HIDDEN, FIRST_ITER, WARM_ITER, BATCH_SIZE, NUM_TRAIN_DRAWS = (20,), 300, 100, 128, 2
#: The lengthscale on one-hot arms, which lie sqrt(2) apart: what is learned of an arm says little of another.
ARM_LENGTHSCALE = 0.5
#: How wide drawn functions are taken: of 1, 0.5, 0.25 and 0.1 the best on tables that no report scores.
SPREAD = 0.5
#: Contexts whose distances are looked at.
MAX_ROWS = 200


def default_reward_model(contexts: np.ndarray, num_arms: int) -> MetaGPRegressor:
    """Return the usual model of rewards: like contexts give like rewards, arm by arm.

    MetaGP-local, whose input kernel is an RBF on the context times a short one on the arm. The lengthscale on the
    context starts at the median distance of the given contexts: in many dimensions nothing is near, and a kernel of one
    standard deviation would see no likeness at all.

    Parameters
    ----------
    contexts : ndarray of shape (n, features)
        Contexts as they come.
    num_arms : int
    """
    num_features = contexts.shape[1]
    distance = float(np.median(pdist(contexts[:MAX_ROWS]))) if len(contexts) > 1 else 0.0
    of_context = kernels.RBF(distance if distance > 0 else 1.0).on(*range(num_features))
    of_arm = kernels.RBF(ARM_LENGTHSCALE).on(*range(num_features, num_features + num_arms))
    return MetaGPRegressor(
        HIDDEN,
        input_kernel=of_context * of_arm,
        max_iter=FIRST_ITER,
        batch_size=BATCH_SIZE,
        n_train_draws=NUM_TRAIN_DRAWS,
    )


class Bandit:
    """A contextual bandit: arms that are chosen by what is known of their rewards, and what is not.

    Parameters
    ----------
    num_arms : int
        Arms are 0, ..., num_arms - 1.
    model : estimator, default=None
        Model of the reward given [context, one-hot arm]: a regressor of this library, or one of scikit-learn with
        `sample_y` (for "thompson") or `predict`. None: `default_reward_model` for the first contexts.
    policy : {"thompson", "greedy", "epsilon_greedy", "uniform"}, default="thompson"
    epsilon : float, default=0.1
        The part of rounds in which "epsilon_greedy" chooses at random.
    spread : float, default=0.5
        How wide "thompson" takes the drawn functions around their mean: 1 is the posterior, less explores less.
    refit_every : int, default=50
        Rounds between two fits; the first of them are uniform.
    warm_iter : int or None, default=100
        Steps of a fit that goes on from the last; None: 0.3 of its `max_iter`.
    random_state : int, default=0
    path : str or path, default=None
        A file that holds the state after every `ask` and `tell`; it must not exist. `Bandit.load` reads it.

    Attributes
    ----------
    contexts, arms, rewards, regrets : ndarray
        All rounds whose reward was told.
    waiting : tuple (contexts, arms)
        Rounds whose reward was not told yet.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior.bandit import Bandit
    >>> bandit = Bandit(num_arms=2, policy="uniform")
    >>> arm = bandit.ask(np.array([0.3, -1.2]))
    >>> bandit.tell(1.0)
    >>> len(bandit.history())
    1
    """

    def __init__(
        self,
        num_arms: int,
        *,
        model: Any = None,
        policy: str = "thompson",
        epsilon: float = 0.1,
        spread: float = SPREAD,
        refit_every: int = 50,
        warm_iter: int | None = WARM_ITER,
        random_state: int = 0,
        path: str | os.PathLike | None = None,
    ) -> None:
        for name, value, lowest in [
            ("num_arms", num_arms, 2),
            ("refit_every", refit_every, 1),
            ("random_state", random_state, 0),
        ]:
            expect(name, value, f"a whole number of at least {lowest}", is_whole(value) and value >= lowest)
        expect("policy", policy, f"one of {tuple(POLICIES)}", policy in POLICIES)
        expect("epsilon", epsilon, "a number between 0 and 1", is_number(epsilon) and 0 <= epsilon <= 1)
        expect("spread", spread, "a number of at least 0", is_number(spread) and spread >= 0)
        refuse_to_replace(path)
        self.num_arms, self.policy, self.epsilon, self.spread = int(num_arms), policy, float(epsilon), float(spread)
        self.refit_every, self.random_state, self.path = int(refit_every), int(random_state), path
        self.warm_iter = warm_iter
        self.model = None if model is None else RefittedModel(model, warm_iter)
        self.contexts, self.arms = np.empty((0, 0)), np.empty(0, int)
        self.rewards, self.regrets = np.empty(0), np.empty(0)
        self.waiting: tuple[np.ndarray, np.ndarray] = self.contexts, self.arms
        self._keep()

    @property
    def num_rounds(self) -> int:
        """How many rewards were told."""
        return len(self.rewards)

    # --- the two calls -------------------------------------------------------------

    def ask(self, contexts: Any) -> Any:
        """Choose an arm for a context, [features], or for every row of [n, features].

        The rewards must be told before other contexts are asked about; asking about the same ones gives the same arms.

        Returns
        -------
        int, or ndarray of shape (n,)
        """
        array = np.asarray(contexts, np.float64)
        rows = self._checked(array[None] if array.ndim == 1 else array)
        if not len(self.waiting[1]):
            self.waiting = rows, self._chosen(rows)
            self._keep()
        elif not np.array_equal(rows, self.waiting[0]):
            raise ValueError(
                f"ask: {len(self.waiting[1])} rounds wait for their rewards (see `waiting`); tell these before asking "
                "about other contexts."
            )
        arms = self.waiting[1]
        return int(arms[0]) if array.ndim == 1 else arms.copy()

    def tell(self, rewards: Any, regrets: Any = None) -> None:
        """Take the rewards of the rounds that wait.

        Parameters
        ----------
        rewards : float or array-like of shape (n,)
        regrets : float or array-like of shape (n,), default=None
            What the best arm would have given beyond the chosen one, where that is known (in a simulation).
        """
        contexts, arms = self.waiting
        values = self._numbers(rewards, "rewards")
        lost = np.full(len(arms), np.nan) if regrets is None else self._numbers(regrets, "regrets")
        self.contexts = contexts if not self.num_rounds else np.vstack([self.contexts, contexts])
        self.arms, self.rewards = np.append(self.arms, arms), np.append(self.rewards, values)
        self.regrets = np.append(self.regrets, lost)
        self.waiting = np.empty((0, contexts.shape[1])), np.empty(0, int)
        self._keep()

    def _checked(self, rows: np.ndarray) -> np.ndarray:
        width = self.contexts.shape[1] if self.num_rounds else rows.shape[-1]
        if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
            raise ValueError(f"ask: expected contexts of {width} numbers; got an array of shape {rows.shape}.")
        if not np.all(np.isfinite(rows)):
            raise ValueError("ask: expected finite numbers in the contexts; some are not.")
        return rows

    def _numbers(self, values: Any, name: str) -> np.ndarray:
        array, count = np.atleast_1d(np.asarray(values, np.float64)), len(self.waiting[1])
        if not count:
            raise ValueError("tell: no round waits for a reward; ask for an arm first.")
        if array.shape != (count,) or not np.all(np.isfinite(array)):
            raise ValueError(f"tell: expected {count} finite {name}, one a waiting round; got {values!r}.")
        return array

    def _chosen(self, contexts: np.ndarray) -> np.ndarray:
        """Return the arms of new rounds."""
        rng = np.random.default_rng([self.random_state, 1, self.num_rounds])
        model, policy = None, POLICIES["uniform"](0.0, 1.0)
        num_fitted = self.num_rounds // self.refit_every * self.refit_every
        if num_fitted and self.policy != "uniform":
            model, policy = self._fitted(num_fitted), POLICIES[self.policy](self.epsilon, self.spread)
        return np.argmax(policy(model, contexts, self.num_arms, rng), axis=1)

    def _fitted(self, num_rounds: int) -> Any:
        """Return the model after the first rounds."""
        if self.model is None:
            first = self.contexts[: self.refit_every]
            self.model = RefittedModel(default_reward_model(first, self.num_arms), self.warm_iter)
        rows = model_rows(self.contexts[:num_rounds], self.arms[:num_rounds], self.num_arms)
        seed = int(np.random.SeedSequence([self.random_state, 0, num_rounds]).generate_state(1)[0] >> 1)
        return self.model.fit(rows, self.rewards[:num_rounds], seed)

    # --- what happened -----------------------------------------------------------------

    def history(self) -> "pd.DataFrame":
        """Return a frame with a row a round: round, arm, reward, regret and cumulative regret (NaN where unknown)."""
        return history_frame(
            {
                "round": np.arange(1, self.num_rounds + 1),
                "arm": self.arms,
                "reward": self.rewards,
                "regret": self.regrets,
                "cumulative_regret": np.cumsum(self.regrets),
            }
        )

    # --- files -------------------------------------------------------------------------

    def _keep(self) -> None:
        """Write the state, where there is a file for it."""
        if self.path is None:
            return
        settings = "num_arms", "policy", "epsilon", "spread", "refit_every", "warm_iter", "random_state"
        data = "contexts", "arms", "rewards", "regrets", "waiting"
        state = {
            "settings": {name: getattr(self, name) for name in settings},
            "data": {name: getattr(self, name) for name in data},
            "model": None if self.model is None else self.model.plain(),
        }
        write_loop(self.path, "bandit", state)

    @classmethod
    def load(cls, path: str | os.PathLike, model: Any = None) -> Self:
        """Return the loop of a file, where it stopped; it goes on keeping itself there.

        Parameters
        ----------
        path : str or path
        model : estimator, default=None
            The model of rewards, where it is not one of this library.
        """
        state = read_loop(path, "bandit")
        made = cls(**state["settings"])
        if state["model"] is not None:
            made.model = RefittedModel.restored(state["model"], model)
        for name, value in {**state["data"], "path": path}.items():
            setattr(made, name, value)
        return made
