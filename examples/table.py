"""The results table of the README: the paper's sinusoid, five seeds, defaults only."""

import numpy as np

from metaprior import MetaGPRegressor, kernels
from metaprior.datasets import sinusoid

MODELS = {"local, periodic": kernels.Periodic(), "local, RBF": kernels.RBF(), "global": None}
SEEDS = range(5)

print(f"{'':18s}" + "".join(f"{name:>18s}" for name in ("in RMSE", "in NLL", "out RMSE", "out NLL")))
for name, kernel in MODELS.items():
    runs = []
    for seed in SEEDS:
        parts = sinusoid(seed)
        model = MetaGPRegressor(input_kernel=kernel, random_state=seed).fit(*parts["train"])
        run = []
        for part in (parts["inside"], parts["outside"]):
            predicted = model.predict_distribution(part.X)
            run += [np.sqrt(np.mean((predicted.mean - part.y) ** 2)), -np.mean(predicted.log_prob(part.y))]
        runs.append(run)
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    print(f"{name:18s}" + "".join(f"{m:10.3f} ± {e:5.3f}" for m, e in zip(mean, error, strict=True)), flush=True)
