"""Files of loops that no loop has written: with a right checksum, and one thing in them wrong."""

import copy

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions import Bandit, Optimiser, PoolLoop
from metaprior.io.saving import load_state

POOL = np.linspace(-2, 2, 20)[:, None]
GP = ExactGPRegressor(n_restarts=0, max_iter=0)

#: What is put in the place of any part of a file.
HOSTILE = {
    "nothing": None,
    "a text": "/precious",
    "-1": -1,
    "2**62": 2**62,
    "10**30": 10**30,
    "a fraction": 0.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "truth": True,
    "an empty list": [],
    "an empty tuple": (),
    "an empty dict": {},
    "a nested tuple": ((0, (1,)),),
    "an empty array": np.empty(0),
    "an array of another shape": np.zeros((3, 7)),
    "an array of whole numbers": np.arange(6),
    "an array of texts": np.array(["a", "b"]),
    "a kernel": kernels.RBF(),
    "another estimator": GP,
}


def pool_loop(path):
    """Return a pool loop after six answers, with a fit and a pending question."""
    labelled = (np.array([[0.1], [0.2]]), np.array([0.0, 0.1]))
    test = (np.array([[0.3]]), np.array([0.2]))
    settings = {"n_initial": 4, "n_queries": 2, "labelled": labelled, "test": test, "random_state": 0}
    loop = PoolLoop(GP, POOL, **settings, path=path).run(np.sin(POOL[:, 0]), 6)
    loop.skip(int(loop.ask().rows[0]))
    return loop


def optimiser(path):
    """Return an optimiser after four values, with a fit and two pending points."""
    loop = Optimiser([(-1.0, 1.0), (0.0, 2.0)], estimator=GP, acquisition="ei", n_initial=3, random_state=0, path=path)
    loop.run(np.sum, 4)
    loop.ask(2)
    return loop


def bandit(path):
    """Return a bandit after four rounds, with a fit and a pending round."""
    loop = Bandit(2, estimator=GP, policy="greedy", refit_every=2, random_state=0, path=path)
    for number in range(4):
        loop.ask(np.array([number, 1.0]))
        loop.tell(float(number), 0.5)
    loop.ask(np.zeros(2))
    return loop


MAKERS = {"active": pool_loop, "optimise": optimiser, "bandit": bandit}
LOOPS = {"active": PoolLoop, "optimise": Optimiser, "bandit": Bandit}


def content_of(kind, path):
    """Return the content of the file of a loop that has come some way."""
    MAKERS[kind](path)
    return load_state(path, kind)


def go_on(loop):
    """Ask and tell twice, and return the history."""
    for _ in range(2):
        if isinstance(loop, Bandit):
            pending = loop.pending.contexts
            loop.ask(pending if len(pending) else np.zeros((1, pending.shape[1])))
            loop.tell(np.zeros(len(loop.pending.arms)))
        else:
            loop.ask()
            pending = loop.pending
            loop.tell(np.zeros(len(pending.rows if isinstance(loop, PoolLoop) else pending)))
    return loop.history


def replaced(content, part, name, value):
    """Return a content with one field of one part replaced."""
    return {**content, part: {**content[part], name: value}}


def mutations(content):
    """Yield contents with one thing wrong, and what it is."""
    for part in content:
        for what, value in HOSTILE.items():
            yield f"{part} is {what}", {**content, part: value}
        yield f"no {part}", {name: value for name, value in content.items() if name != part}
        for name, usual in content[part].items():
            yield f"no {part}: {name}", {**content, part: {n: v for n, v in content[part].items() if n != name}}
            for what, value in [*HOSTILE.items(), *near(usual).items()]:
                yield f"{part}: {name} is {what}", replaced(content, part, name, copy.copy(value))
        for name in ("path", "estimator", "num_queries", "__class__"):
            yield f"{part} has {name}", replaced(content, part, name, "planted")


def near(usual):
    """Return values like the usual one: of its type, and nearly right."""
    if isinstance(usual, np.ndarray) and usual.size:
        wrong = {"one row less": usual[:-1], "one row more": np.concatenate([usual, usual[:1]]), "flat": usual.ravel()}
        if usual.dtype.kind == "f":
            return {**wrong, "not finite": usual + np.inf, "far away": usual + 1e9, "float32": usual.astype("f4")}
        return {**wrong, "negative": usual - 9, "out of range": usual + 9}
    if isinstance(usual, tuple) and usual:
        texts = ("a",) * len(usual)
        return {"shorter": usual[:-1], "longer": usual + usual[:1], "a list": list(usual), "texts": texts}
    if isinstance(usual, int) and not isinstance(usual, bool):
        return {"one less": usual - 1, "one more": usual + 1, "a float": float(usual)}
    return {}
