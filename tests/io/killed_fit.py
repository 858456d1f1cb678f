"""Fit with checkpoints and be killed by SIGKILL at a chosen event: OUT FOLDER KIND EVENT NUMBER.

Events are the moments of writing a checkpoint (before the temporary file, after its content, before and after the
rename), the end of a block of steps of training and the beginning of one of chains; at the NUMBER-th EVENT the
process kills itself. NUMBER 0 never does.
"""

import os
import signal
import sys

import numpy as np

from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.baselines import EnsembleRegressor, HMCRegressor, LaplaceRegressor
from metaprior.inference import nuts, programs
from metaprior.io import atomic

KINDS = {
    "local": MetaGPRegressor((4,), input_kernel="rbf", n_inducing=6, max_iter=800, random_state=0),
    "batches": MetaGPRegressor((4,), n_inducing=6, max_iter=800, batch_size=8, random_state=0, input_kernel=None),
    "stopping": MetaGPRegressor(
        (4,), n_inducing=6, max_iter=1500, early_stopping=True, n_iter_no_change=3, random_state=0, input_kernel=None
    ),
    "classes": MetaGPClassifier((4,), n_inducing=6, max_iter=400, random_state=0, input_kernel=None),
    "ensemble": EnsembleRegressor((4,), n_members=3, max_iter=300, random_state=0),
    "laplace": LaplaceRegressor((4,), max_iter=400, random_state=0),
    "sampler": HMCRegressor((2,), n_warmup=150, n_samples=250, n_chains=2, max_tree_depth=4, random_state=0),
}


def die_at(event: str, number: int) -> None:
    """Count an event, and end at the chosen one."""
    counts = {"left": number}

    def happened(name: str) -> None:
        if name == event:
            counts["left"] -= 1
            if counts["left"] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    make, replace, flush, finite = atomic._new_temporary, os.replace, os.fsync, programs.is_finite
    advance = nuts._advance
    nuts._advance = lambda *a: (happened("transitions"), advance(*a))[1]
    nuts._advance.lower = advance.lower
    atomic._new_temporary = lambda *a: (happened("before"), make(*a))[1]
    os.fsync = lambda *a: (happened("written"), flush(*a))[1]
    os.replace = lambda *a: (happened("unnamed"), replace(*a), happened("renamed"))[1]
    programs.is_finite = lambda tree: (happened("block of steps"), finite(tree))[1]


def main(out: str, folder: str, kind: str, event: str, number: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (30, 1))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(30)
    die_at(event, int(number))
    model = KINDS[kind]
    model.fit(x, y > 0 if kind == "classes" else y, checkpoint=folder or None, every=100)
    predictive = model.predict_distribution(x)
    kept = {"mean": predictive.probabilities if kind == "classes" else predictive.mean}
    if kind != "classes":
        kept["std"] = predictive.std
    history = model.log_joint_history_ if kind == "sampler" else model.elbo_history_
    np.savez(out, elbo=history, steps=model.n_iter_, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
