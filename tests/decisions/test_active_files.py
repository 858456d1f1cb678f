"""A pool loop in its file: killed at any moment, and parts that no file holds."""

import os
import signal
import subprocess
import sys

import numpy as np
import optax
import pytest
from numpy.testing import assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from decisions.active_pools import Distance, X, rng
from killed import needs_sigkill
from metaprior.baselines import MAPRegressor
from metaprior.decisions import PoolLoop
from metaprior.io.plain import UnsavableError

pytestmark = pytest.mark.filterwarnings("ignore:the median distance", "ignore:.*close to the specified")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.metaprior"


#: Creates the loop of the file or goes on with it, and says every call that is done.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.decisions import PoolLoop
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

kind, path, n_observations = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
X = np.linspace(-2, 2, 60)[:, None]
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20}
if kind == "warm":
    settings = {"acquisition": "joint_information", "n_queries": 2}
    make = lambda: MetaGPRegressor(**SMALL)
else:
    settings = {}
    make = lambda: GaussianProcessRegressor(kernels.RBF() + kernels.WhiteKernel(0.01))
if path.exists():
    loop = PoolLoop.load(path, **({} if kind == "warm" else {"estimator": make()}))
else:
    loop = PoolLoop(make(), X, path=path, n_initial=4, random_state=7, **settings)
print("made", flush=True)
while len(loop.rows) < n_observations:
    question = loop.ask()
    print("asked", *question.rows, flush=True)
    loop.tell(np.sin(3 * question.X[:, 0]))
    print("told", flush=True)
print("rows", *loop.rows, flush=True)
"""


def process(kind, path, n_observations):
    command = [sys.executable, "-c", PROGRAM, kind, str(path), str(n_observations)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})


def killed_after(kind, path, n_observations, num_lines):
    """Run the program, kill it once it has said so many lines (or has ended), and return these."""
    with process(kind, path, n_observations) as running:
        lines = [running.stdout.readline().strip() for _ in range(num_lines)]
        running.send_signal(signal.SIGKILL)
    return lines


def finished(kind, path, n_observations):
    with process(kind, path, n_observations) as running:
        lines = running.stdout.read().splitlines()
    assert running.returncode == 0
    return lines


@needs_sigkill
def test_a_loop_that_is_killed_goes_on_with_the_same_question(path):
    """It dies with its second question open; the file's next question is that one, and the rest is as if unharmed."""
    lines = killed_after("from elsewhere", path, 20, 4)
    assert [line.split()[0] for line in lines] == ["made", "asked", "told", "asked"]
    gp = GaussianProcessRegressor(RBF() + WhiteKernel(0.01))
    loop = PoolLoop.load(path, estimator=gp)
    asked = int(lines[3].split()[1])
    assert asked in [*loop.ask().rows, *loop.rows]  # the kill may come a call later
    loop.run(np.sin(3 * loop.X[:, 0]), 9)
    whole = PoolLoop(gp, loop.X, n_initial=4, random_state=7)
    whole.run(np.sin(3 * loop.X[:, 0]), 9)
    assert_array_equal(loop.rows, whole.rows)


@needs_sigkill
@pytest.mark.slow
def test_a_loop_killed_at_any_moment_asks_what_an_unharmed_one_asks(path, tmp_path):
    whole = finished("warm", tmp_path / "whole.metaprior", 16)
    killed = []
    for seed in range(6):
        with process("warm", path, 16) as running:
            running.stdout.readline()  # "made": importing is no call
            try:
                running.wait(rng(seed).uniform(0, 1.5))
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
        killed.append(running.returncode == -signal.SIGKILL)
    assert any(killed)
    assert finished("warm", path, 16)[-1] == whole[-1]


def test_a_function_to_choose_by_is_given_again(path):
    def left(predictive):
        return -np.arange(len(predictive.mean))

    PoolLoop(Distance(), X, acquisition=left, n_initial=1, path=path, random_state=0).tell(0.0, rows=0)
    with pytest.raises(ValueError, match="the acquisition was a function.*pass acquisition="):
        PoolLoop.load(path, estimator=Distance())
    assert PoolLoop.load(path, estimator=Distance(), acquisition=left).ask().rows.tolist() == [1]


@pytest.mark.parametrize("part", [{"activation": lambda x: x}, {"optimizer": optax.sgd(1e-3)}])
def test_what_has_no_plain_form_is_told_before_the_first_question(part, path):
    with pytest.raises(UnsavableError, match="cannot be saved|needs the default"):
        PoolLoop(MAPRegressor(**part), X, path=path)
    assert not path.exists()
