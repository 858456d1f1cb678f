"""Every loop asks, is told, runs, is saved and loaded in the same way."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge

from decisions import active_pools, optimise_problem
from decisions.active_pools import LABELS, SMALL, Distance
from decisions.loop_contract import LoopContract
from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions import Bandit, Optimiser, PoolLoop

pytestmark = pytest.mark.filterwarnings("ignore:the median distance", "ignore:.*close to the specified")


class TestPoolLoop(LoopContract):
    """Active learning, two rows per question; fits are fresh at 6 and 12 rows and go on in between."""

    loop, quick, n_observations = PoolLoop, "elsewhere", 14
    X, Y = active_pools.X, active_pools.Y
    inputs = X
    variants = {
        "exact gp": {"estimator": ExactGPRegressor(n_restarts=0), "acquisition": "joint_information"},
        "warm": {"estimator": MetaGPRegressor(**SMALL, input_kernel=None), "acquisition": "joint_information"},
        "warm classes": {"estimator": MetaGPClassifier(**SMALL, input_kernel=None), "acquisition": "joint_information"},
        "elsewhere": {"estimator": Distance(), "acquisition": "variance"},
    }
    refusals = {
        "tell: expected 2 answers.*got 3": lambda loop: loop.tell([1.0, 2.0, 3.0]),
        "tell: y: expected finite numbers": lambda loop: loop.tell([1.0, np.nan]),
        "tell: y: expected numbers": lambda loop: loop.tell("abc"),
        "expected answers of shape .* as before": lambda loop: loop.tell(np.ones((2, 2))),
        "tell: .*neither answered nor skipped": lambda loop: loop.tell(1.0, rows=loop.rows[0]),
        r"neither answered nor skipped; got \[40\]": lambda loop: loop.tell(1.0, rows=40),
        r"neither answered nor skipped; got \[-1\]": lambda loop: loop.tell(1.0, rows=-1),
        "each once": lambda loop: loop.tell([1.0, 1.0], rows=[loop.pending.rows[0]] * 2),
        "skip: expected numbers of rows": lambda loop: loop.skip(0.5),
        r"oracle: expected 40 targets.*shape \(5,\)": lambda loop: loop.run(active_pools.Y[:5], 10),
        "n_observations: expected a whole number": lambda loop: loop.run(active_pools.Y, 10.5),
    }
    program = """
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.decisions import PoolLoop
X = np.linspace(-2, 2, 60)[:, None]
model = MetaGPRegressor((4,), n_inducing=4, n_predict_draws=8, max_iter=20)
try:
    settings = {"acquisition": "joint_information", "n_queries": 2, "n_initial": 4, "random_state": 7}
    loop = PoolLoop(model, X, **settings, path=sys.argv[1])
except FileExistsError:
    loop = PoolLoop.load(sys.argv[1])
while loop.n_observed < 14:
    question = loop.ask()
    done("asked " + str(question.rows))
    loop.tell(np.sin(3 * question.X[:, 0]))
    done("told")
"""

    def make(self, variant=None, **settings):
        usual = {**self.variants[variant or self.quick], "n_queries": 2, "n_initial": 6, "random_state": 5}
        return PoolLoop(X=self.X, **{**usual, **settings})

    def source(self, variant=None):
        return LABELS if variant == "warm classes" else self.Y

    def step(self, loop):
        rows = loop.ask().rows
        loop.tell((LABELS if loop._model.classifies else self.Y)[rows])

    def ask(self, loop):
        return loop.ask().rows

    def pending(self, loop):
        return loop.pending.rows


class TestOptimiser(LoopContract):
    """Bayesian optimisation; fits are fresh at 4 and 8 values and go on in between."""

    loop, quick, n_observations = Optimiser, "elsewhere", 9
    inputs = optimise_problem.BOX.spread(5, 0)
    variants = {
        "thompson": {"estimator": optimise_problem.tiny(random_state=None), "acquisition": "thompson"},
        "improvement": {"estimator": optimise_problem.tiny(random_state=None), "acquisition": "ei"},
        "elsewhere": {
            "estimator": GaussianProcessRegressor(RBF([1.0, 5.0]), alpha=1e-4, optimizer=None),
            "acquisition": "ei",
        },
    }
    refusals = {
        "tell: expected rows of 2 numbers": lambda loop: loop.tell(1.0, X=[0.0]),
        "tell: expected points in the box": lambda loop: loop.tell(1.0, X=[0.0, 31.0]),
        "tell: expected finite answers.*tell a poor value": lambda loop: loop.tell(np.nan),
        "tell: expected 1 answers, one for each pending point": lambda loop: loop.tell([1.0, 2.0]),
        "tell: expected 1 answers, one for each point": lambda loop: loop.tell([1.0, 2.0], X=[0.0, 20.0]),
        "n_queries: expected a whole number of at least 1": lambda loop: loop.ask(0),
        "n_observations: expected a whole number": lambda loop: loop.run(optimise_problem.answered, -1),
    }
    program = """
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.decisions import Optimiser
bounds = [(-2.0, 1.0), (10.0, 30.0)]
surrogate = MetaGPRegressor((4,), input_kernel="rbf", n_inducing=6, max_iter=60, noise=0.05)
try:
    loop = Optimiser(bounds, estimator=surrogate, n_initial=3, warm_iter=20, random_state=0, path=sys.argv[1])
except FileExistsError:
    loop = Optimiser.load(sys.argv[1])
while loop.n_observed < 6:
    question = loop.ask()
    done("asked " + " ".join(value.hex() for value in question[0].tolist()))
    loop.tell(float((question[0, 0] + 0.5) ** 2 + np.sin(question[0, 1] / 3)))
    done("told")
"""

    @pytest.fixture(autouse=True)
    def few_draws(self, monkeypatch):
        monkeypatch.setattr("metaprior.decisions.optimise.acquisition.NUM_DRAWS", optimise_problem.FEW_DRAWS)

    def make(self, variant=None, **settings):
        usual = {**self.variants[variant or self.quick], "n_initial": 4, "warm_iter": 20, "random_state": 1}
        return Optimiser(optimise_problem.BOX.bounds, **{**usual, **settings})

    def source(self, variant=None):
        return optimise_problem.answered

    def step(self, loop):
        loop.tell(optimise_problem.answered(loop.ask()[0]))

    def ask(self, loop):
        return loop.ask()

    def pending(self, loop):
        return loop.pending


class Slopes:
    """Arm 1 gives the first number of the context, arm 0 nothing."""

    def contexts(self, rounds):
        return np.array([np.random.default_rng(int(t)).standard_normal(3) for t in rounds])

    def expected(self, rounds):
        return np.stack([np.zeros(len(rounds)), self.contexts(rounds)[:, 0]], axis=1)

    def rewards(self, rounds, arms):
        return self.expected(rounds)[np.arange(len(rounds)), arms]


class TestBandit(LoopContract):
    """A contextual bandit; fits are fresh at 4, 8 and 16 rounds and go on at 12."""

    loop, quick, n_observations = Bandit, "elsewhere", 16
    inputs = np.random.default_rng(0).standard_normal((5, 5))
    variants = {
        "thompson": {
            "estimator": MetaGPRegressor((4,), n_inducing=6, max_iter=60, n_predict_draws=4, input_kernel=None)
        },
        "epsilon-greedy": {
            "estimator": MetaGPRegressor((4,), n_inducing=6, max_iter=60, n_predict_draws=4, input_kernel=None),
            "policy": "epsilon_greedy",
        },
        "elsewhere": {"estimator": BayesianRidge(), "policy": "epsilon_greedy"},
    }
    refusals = {
        "ask: expected finite numbers": lambda loop: loop.ask([np.nan, 1.0, 2.0]),
        "ask: the rewards of 4 rounds are pending": lambda loop: loop.ask([0.0, 1.0, 2.0]),
        "ask: expected contexts of 3 numbers": lambda loop: loop.ask([1.0, 2.0]),
        "tell: expected 4 finite rewards": lambda loop: loop.tell(1.0),
        "tell: expected 4 finite rewards, one": lambda loop: loop.tell([1.0, 2.0, 3.0, np.inf]),
        "tell: expected 4 finite regrets": lambda loop: loop.tell(np.zeros(4), 1.0),
        "n_observations: expected a whole number": lambda loop: loop.run(Slopes(), None),
    }
    program = """
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.decisions import Bandit
model = MetaGPRegressor((4,), n_inducing=6, max_iter=60)
try:
    bandit = Bandit(4, estimator=model, refit_every=2, warm_iter=20, random_state=0, path=sys.argv[1])
except FileExistsError:
    bandit = Bandit.load(sys.argv[1])
while bandit.n_observed < 6:
    context = np.random.default_rng(bandit.n_observed).standard_normal(2)
    arm = bandit.ask(context)
    done(f"chose {arm}")
    bandit.tell(arm * context[0])
    done("told")
"""

    def make(self, variant=None, **settings):
        usual = {**self.variants[variant or self.quick], "refit_every": 4, "warm_iter": 20, "random_state": 1}
        return Bandit(2, **{**usual, **settings})

    def source(self, variant=None):
        return Slopes()

    def rounds(self, loop):
        return loop.n_observed + np.arange(4)

    def step(self, loop):
        arms = self.ask(loop)
        expected = Slopes().expected(self.rounds(loop))
        regrets = expected.max(axis=1) - expected[np.arange(4), arms]
        loop.tell(Slopes().rewards(self.rounds(loop), arms), regrets)

    def ask(self, loop):
        return loop.ask(Slopes().contexts(self.rounds(loop)))

    def pending(self, loop):
        return loop.pending.arms
