"""Fit small models with their rows spread over devices and save what they say: OUT DEVICES [ADDRESS RANK]."""

import sys

import jax
import numpy as np

from metaprior import MetaGPRegressor
from metaprior.baselines import MFVIRegressor
from metaprior.output_layer import blocks


def main(out: str, devices: str, address: str | None = None, rank: str = "0") -> None:
    if address is not None:
        jax.distributed.initialize(address, 2, int(rank))
        assert jax.process_count() == 2
    spread = {"none": None, "all": "all"}.get(devices, devices)
    spread = int(spread) if spread not in (None, "all") else spread
    if spread is not None:
        assert jax.device_count() == (2 if address is not None else int(devices))
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (41, 2))
    y = np.sin(3 * x[:, 0]) + x[:, 1]
    blocks.BLOCK = 16  # so that there are several
    kept = {}
    for name, estimator in {
        "all rows": MetaGPRegressor((4,), input_kernel="rbf", n_inducing=8),
        "sums over rows": MetaGPRegressor((4,), input_kernel=None),
        "sums over rows, local": MetaGPRegressor(
            (4,), input_kernel="rbf", output_layer="inducing_rows", n_inducing_rows=9
        ),
        "batches, noise of rows": MFVIRegressor((4,), batch_size=16),
    }.items():
        estimator.set_params(max_iter=40, n_predict_draws=8, random_state=0, devices=spread).fit(x, y)
        kept[f"{name}: elbo"] = estimator.elbo_history_
        kept[f"{name}: mean"], kept[f"{name}: std"] = estimator.predict(x, return_std=True)
    np.savez(out, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
