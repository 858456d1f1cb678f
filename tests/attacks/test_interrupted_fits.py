"""An interrupted fit changes nothing: a refit leaves the earlier fit bit for bit, a first fit leaves no fit.

The interruption is a KeyboardInterrupt at a line of the library (the lines of a fit are counted, and fits end at some
of them), or a SIGINT to a process at any moment.
"""

import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import IO, Any

import pytest
from sklearn.exceptions import NotFittedError

import interrupted_fit
import metaprior
from interrupted_fit import DATA, ESTIMATORS, answers, make
from metaprior.estimators.together import fit_together

SOURCES = str(Path(metaprior.__file__).parent)
#: Lines at which a fit is interrupted: the last ones of it, where results are stored, and some of all others.
LAST, OTHERS = 12, 8
#: Seconds after which a signal that had no effect is sent again; a first fit and its two answers take far less.
AGAIN_AFTER = 120.0
QUICK = ("MetaGPRegressor", "LaplaceClassifier")
SOME_SLOW = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in ESTIMATORS]


class Interrupted:
    """Raises KeyboardInterrupt at the so-manieth line of the library that a call reaches; 0 only counts the lines."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.lines = at, 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        # no signal comes between the lines of a lock's block and its release, as an exception of a tracer would
        if not name.startswith(SOURCES) or name.endswith("compilation.py"):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self

    def run(self, call: Callable[[], object]) -> bool:
        """Return whether the call ended."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            return False
        finally:
            sys.settrace(before)
        return True


def lines_of(call: Callable[[], object]) -> list[int]:
    """Return the lines of a call to interrupt it at. A second call has as many as any later one."""
    for counted in (Interrupted(), Interrupted()):
        assert counted.run(call)
        total = counted.lines
    others = random.Random(0).sample(range(1, total - LAST + 1), OTHERS)
    return [*others, *range(total - LAST + 1, total + 1)]


def attack_refits(name: str) -> int:
    """Interrupt refits of an estimator; return how many were interrupted."""
    model, (old, new) = make(name), DATA[name]
    after, before = answers(name, model.fit(*new)), answers(name, model.fit(*old))
    assert before != after
    other, state = make(name).fit(*old), dict(vars(model))
    lines = lines_of(lambda: other.fit(*new))
    for line in lines:
        assert not Interrupted(line).run(lambda: model.fit(*new))
        if all(vars(model).get(part) is state[part] for part in state):
            assert vars(model).keys() == state.keys()
            assert answers(name, model) == before
        else:  # at a line after the one that stores everything
            assert answers(name, model) == after
            model.__dict__ = dict(state)
    return len(lines)


def attack_first_fits(name: str) -> int:
    """Interrupt first fits of an estimator; return how many were interrupted."""
    new = DATA[name][1]
    whole = answers(name, make(name).fit(*new))
    waiting = [make(name) for _ in range(2)]
    lines = lines_of(lambda: waiting.pop().fit(*new))
    for line in lines:
        first = make(name)
        assert not Interrupted(line).run(lambda first=first: first.fit(*new))
        try:
            assert answers(name, first) == whole
        except NotFittedError:
            assert vars(first).keys() == vars(make(name)).keys()
    return len(lines)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SOME_SLOW)
def test_an_interrupted_fit_leaves_the_earlier_one_bit_for_bit(name):
    assert attack_refits(name) == LAST + OTHERS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SOME_SLOW)
def test_an_interrupted_first_fit_is_no_fit(name):
    assert attack_first_fits(name) == LAST + OTHERS


def test_every_estimator_of_the_library_is_interrupted():
    from metaprior import baselines, multitask

    known = ["MetaGPRegressor", "MetaGPClassifier", *baselines.__all__, *multitask.__all__]
    assert set(known) == set(ESTIMATORS)


@pytest.mark.filterwarnings("ignore")
def test_estimators_fitted_together_are_whole_after_an_interruption():
    """The fits of several are stored one after another; each is its earlier fit or the new one, and no mixture."""
    name = "MAPRegressor"
    models = [make(name), make(name).set_params(random_state=1)]
    pairs = [[DATA[name][index]] * 2 for index in (0, 1)]
    fit_together(models, pairs[1])
    after = [answers(name, model) for model in models]
    fit_together(models, pairs[0])
    before, states = [answers(name, model) for model in models], [dict(vars(model)) for model in models]
    others = [make(name), make(name)]
    for line in lines_of(lambda: fit_together(others, pairs[1])):
        assert not Interrupted(line).run(lambda: fit_together(models, pairs[1]))
        for model, old, new, state in zip(models, before, after, states, strict=True):
            assert answers(name, model) in (old, new)
            model.__dict__ = dict(state)


def interrupted_by_signal(names: list[str], seed: int) -> list[str]:
    """Send SIGINT to a process at random moments of fits; return what it says of each.

    Python drops an exception that is raised in a callback of the garbage collector, of which JAX has one, so a signal
    can be lost; a person would press Ctrl-C again, and so does this.
    """
    rng = random.Random(seed)
    command = [sys.executable, "-W", "ignore", interrupted_fit.__file__, *names]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines: queue.Queue[str] = queue.Queue()
    readers = [threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True)]
    errors: list[str] = []
    readers.append(threading.Thread(target=_read, args=(process.stderr, errors.append), daemon=True))
    for reader in readers:
        reader.start()
    said: list[str] = []
    while len(said) < len(names) and process.poll() is None:
        try:
            line = lines.get(timeout=AGAIN_AFTER)
        except queue.Empty:
            line = "fitting again"
        if line.startswith("fitting"):
            time.sleep(rng.uniform(0.0, 0.3))
            process.send_signal(signal.SIGINT)
        else:
            said.append(line.strip())
    assert process.wait(timeout=AGAIN_AFTER) == 0, "".join(errors)[-2000:]
    return said


def _read(stream: IO[str] | None, put: Callable[[str], None]) -> None:
    assert stream is not None
    for line in stream:
        put(line)


def test_sigint_leaves_a_whole_fit():
    said = interrupted_by_signal(["MAPRegressor"] * 4, 0)
    assert said == ["MAPRegressor whole"] * 4


@pytest.mark.slow
def test_sigint_leaves_a_whole_fit_of_every_estimator():
    """Two interruptions of each, at random moments."""
    names = [name for name in ESTIMATORS for _ in range(2)]
    assert interrupted_by_signal(names, 1) == [f"{name} whole" for name in names]
