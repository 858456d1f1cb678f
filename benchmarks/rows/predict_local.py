"""`predict` of a local model fitted on 1,000 rows, against the way it was done before: through all rows, bit by bit.

The former way is written out here: every draw of the layers below conditions on all rows, and 256 rows are asked about
at a time.
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, alternating
from benchmarks.tables import friedman
from metaprior import MetaGPRegressor
from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.output_layer import ConditionedGP
from metaprior.predictive import integrated

NUM_NEW, CHUNK = 40_960, 256


def _former(model: MetaGPRegressor, new: np.ndarray):
    """Return a program for mean and standard deviation through all rows."""
    x, num_draws = model._standardised(new), int(model.n_predict_draws) // 8
    with in_float64():
        key = jax.random.wrap_key_data(jnp.asarray(model.draw_key_), impl="threefry2x32")
        fitted = as_float64(integrated._predicting(model.model_))
        posterior, likelihood = integrated._conditioned(fitted, key, num_draws)
    noise = np.exp(np.asarray(likelihood.log_noise))[:, None, 0]

    @compiled
    def moments(posterior: ConditionedGP, rows: jax.Array):
        return jax.lax.map(lambda own: own.moments(rows), posterior)

    def call() -> tuple[np.ndarray, np.ndarray]:
        means, variances = [], []
        for start in range(0, len(x), CHUNK):
            with in_float64():
                mean, covariance = (np.asarray(a) for a in moments(posterior, jnp.asarray(x[start : start + CHUNK])))
            means.append(mean[..., 0])
            variances.append(covariance[..., 0, 0] + noise**2)
        mean, variance = (np.concatenate(parts, axis=1) for parts in (means, variances))
        return np.mean(mean, axis=0), np.sqrt(np.mean(variance, axis=0) + np.var(mean, axis=0))

    return call


def measure() -> Row:
    """Return (time now) / (time before), and how far the answers lie apart."""
    model = MetaGPRegressor(input_kernel="rbf", random_state=0).fit(*friedman(1000, 0))
    new = friedman(NUM_NEW, 1)[0]
    former = _former(model, new)
    times = alternating({"now": lambda: model.predict(new, return_std=True), "before": former}, repeats=3)
    (mean, std), (mean_before, std_before) = model.predict(new, return_std=True), former()
    std_before = std_before * model.y_scale_[0]
    mean_before = model.y_offset_[0] + model.y_scale_[0] * mean_before
    apart = float(np.max(np.abs(mean - mean_before) / std_before))
    return Row(
        "`predict` of a local model fitted on 1,000 rows: now / through all rows, as before",
        times["now"] / times["before"],
        "<= 0.05",
        {
            "seconds": times,
            "rows per second, now": NUM_NEW / times["now"],
            "largest difference of means, in standard deviations": apart,
            "largest relative difference of standard deviations": float(np.max(np.abs(std / std_before - 1))),
        },
    )
