"""The results tables: the paper's sinusoid with five seeds and defaults. --baselines runs the other methods."""

import sys

import numpy as np

from metaprior import MetaGPRegressor, baselines, kernels
from metaprior.datasets import sinusoid

MODELS = {
    "local, periodic": lambda seed: MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=seed),
    "local, RBF": lambda seed: MetaGPRegressor(input_kernel=kernels.RBF(), random_state=seed),
    "global": lambda seed: MetaGPRegressor(input_kernel=None, random_state=seed),
}
BASELINES = {
    "exact GP, periodic": lambda seed: baselines.ExactGPRegressor(kernels.Periodic(), random_state=seed),
    "exact GP, RBF": lambda seed: baselines.ExactGPRegressor(kernels.RBF(), random_state=seed),
    "DKL": lambda seed: baselines.DKLRegressor(random_state=seed),
    "MFVI": lambda seed: baselines.MFVIRegressor(random_state=seed),
    "MAP": lambda seed: baselines.MAPRegressor(random_state=seed),
    "MetaNN": lambda seed: baselines.MetaNNRegressor(random_state=seed),
    "ensemble": lambda seed: baselines.EnsembleRegressor(random_state=seed),
    "Laplace": lambda seed: baselines.LaplaceRegressor(random_state=seed),
    "HMC": lambda seed: baselines.HMCRegressor(random_state=seed),
}
SEEDS = range(5)


def scores(model, parts):
    """Return RMSE and NLL inside the range of the data, then outside."""
    model.fit(*parts["train"])
    found = []
    for part in (parts["inside"], parts["outside"]):
        predicted = model.predict_distribution(part.X)
        found += [np.sqrt(np.mean((predicted.mean - part.y) ** 2)), -np.mean(predicted.log_prob(part.y))]
    return found


print(f"{'':20s}" + "".join(f"{name:>18s}" for name in ("in RMSE", "in NLL", "out RMSE", "out NLL")))
for name, make in (BASELINES if "--baselines" in sys.argv else MODELS).items():
    runs = [scores(make(seed), sinusoid(seed)) for seed in SEEDS]
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    print(f"{name:20s}" + "".join(f"{m:10.3f} ± {e:5.3f}" for m, e in zip(mean, error, strict=True)), flush=True)
