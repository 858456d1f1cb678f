"""The three kinds of loops as the attacks see them: made, loaded, asked, told one number, and what they have stored."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge

from decisions.active_pools import Distance
from metaprior.decisions import Bandit, Optimiser, PoolLoop


class Pool:
    """Active learning, one row per question; the first two are random."""

    loop, estimator = PoolLoop, Distance()

    def make(self, path, seed=7):
        pool = np.linspace(-2, 2, 400)[:, None]
        return PoolLoop(self.estimator, pool, n_initial=1, random_state=seed, path=path)

    def load(self, path):
        return PoolLoop.load(path, self.estimator)

    def ask(self, loop):
        return loop.ask().rows.tolist()

    def tell(self, loop, value):
        loop.tell(value)

    def tell_unasked(self, loop, value):
        loop.tell(value, rows=int(value))

    def stored(self, loop):
        return [] if loop._state.targets is None else loop._state.targets.tolist()


class Optimise:
    """Bayesian optimisation, one point per question; the first four are spread over the box."""

    loop = Optimiser
    estimator = GaussianProcessRegressor(RBF([1.0, 5.0]), alpha=1e-4, optimizer=None)

    def make(self, path, seed=7):
        settings = {"estimator": self.estimator, "acquisition": "ei", "n_initial": 4, "random_state": seed}
        return Optimiser([(-2.0, 1.0), (10.0, 30.0)], **settings, path=path)

    def load(self, path):
        return Optimiser.load(path, self.estimator)

    def ask(self, loop):
        return loop.ask().tolist()

    def tell(self, loop, value):
        loop.tell(value)

    def tell_unasked(self, loop, value):
        loop.tell(value, X=[-value / 1000, 20.0])

    def stored(self, loop):
        return loop.y.tolist()


class Arms:
    """A contextual bandit, one context per question; a fit at every fourth round."""

    loop, estimator = Bandit, BayesianRidge()

    def make(self, path, seed=7):
        settings = {"estimator": self.estimator, "policy": "epsilon_greedy", "refit_every": 4, "random_state": seed}
        return Bandit(3, **settings, path=path)

    def load(self, path):
        return Bandit.load(path, self.estimator)

    def ask(self, loop):
        return loop.ask(np.random.default_rng(loop.n_observed).standard_normal(2))

    def tell(self, loop, value):
        loop.tell(value)

    def tell_unasked(self, loop, value):
        """Play a round that nobody has begun. A bandit is told nothing else."""
        if len(loop.pending.arms):
            raise BlockingIOError("another one's round is pending")
        self.ask(loop)
        self.tell(loop, value)

    def stored(self, loop):
        return loop.rewards.tolist()


KINDS = {"active": Pool(), "optimise": Optimise(), "bandit": Arms()}
