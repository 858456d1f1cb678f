"""A fit with checkpoints that says "saved" after each of them, to be killed from outside: OUT FOLDER KIND."""

import sys

import numpy as np

from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.baselines import DKLRegressor, EnsembleRegressor, HMCRegressor, LaplaceClassifier, MAPRegressor
from metaprior.io.checkpoints import Checkpoint

KINDS = {
    "point": MAPRegressor((4,), max_iter=6000, random_state=0),
    "integrated": MetaGPRegressor(
        (3,), max_iter=2000, tol=1e-9, n_iter_no_change=50, random_state=0, input_kernel=None
    ),
    "drawn": MetaGPRegressor((3,), output_layer="drawn", n_inducing=5, max_iter=1500, random_state=0),
    "phases": MetaGPRegressor((3,), input_kernel="rbf", max_iter=1200, random_state=0),
    "classes": MetaGPClassifier((3,), batch_size=16, max_iter=1500, random_state=0, input_kernel=None),
    "held out": DKLRegressor((3,), n_inducing=5, early_stopping=True, max_iter=1500, random_state=0),
    "ensemble": EnsembleRegressor((3,), n_members=3, max_iter=2000, random_state=0),
    "laplace": LaplaceClassifier((3,), max_iter=6000, random_state=0),
    "sampler": HMCRegressor((2,), n_warmup=150, n_samples=250, n_chains=2, max_tree_depth=4, random_state=0),
}


def main(out: str, folder: str, kind: str) -> None:
    rng, rows = np.random.default_rng(0), 220 if kind == "phases" else 30
    x = rng.uniform(-1, 1, (rows, 1))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(rows)
    save = Checkpoint.save
    Checkpoint.save = lambda self, *given: (save(self, *given), print("saved", flush=True))[0]
    model = KINDS[kind]
    is_classifier = hasattr(model, "predict_proba")
    model.fit(x, y > 0 if is_classifier else y, checkpoint=folder or None, every=100)
    answer = model.predict_proba(x) if is_classifier else np.asarray(model.predict(x, return_std=True))
    history = model.log_joint_history_ if kind == "sampler" else model.elbo_history_
    np.savez(out, answer=answer, history=history, steps=model.n_iter_)


if __name__ == "__main__":
    main(*sys.argv[1:])
