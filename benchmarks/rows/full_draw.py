"""One exact draw of all weights of 784-100-10: Matheron's rule on the grid against a dense Cholesky factor.

The dense covariance of 79,510 weights would take 25 GB. So a smaller one is measured, and its time is multiplied by the
cube of the ratio of the sizes.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, alternating
from benchmarks.models import images, metagp
from metaprior.random import draw_shared_normals, make_key
from metaprior.weight_gp import Full

SIZES = (784, 100, 10)
DENSE = 8000


def measure() -> Row:
    """Return (time of a draw) / (extrapolated time of the dense factor)."""
    model = metagp(SIZES, images(), local=False, conditional=Full()).weights
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), model)

    @eqx.filter_jit
    def draw(model: object, key: jax.Array) -> list[jax.Array]:
        noise = jax.tree.map(lambda a: a[0], draw_shared_normals(key, model.sizes(), 1, jnp.float32))
        x = jnp.zeros((1, SIZES[0]), jnp.float32)
        return model.prepared().draw(noise).weights(x, noise.rows)

    points = np.random.default_rng(0).standard_normal((DENSE, 4)).astype(np.float32)

    @jax.jit
    def dense(points: jax.Array, normals: jax.Array) -> jax.Array:
        squares = jnp.sum(points**2, 1)
        gram = jnp.exp(-0.5 * jnp.maximum(squares[:, None] + squares[None] - 2 * points @ points.T, 0))
        return jnp.linalg.cholesky(gram + 1e-2 * jnp.eye(DENSE)) @ normals

    programs = {
        "ours": lambda: jax.block_until_ready(draw(model, make_key(0))),
        "dense": lambda: jax.block_until_ready(dense(points, points[:, 0])),
    }
    times = alternating(programs, repeats=5)
    num_weights = sum((a + 1) * b for a, b in zip(SIZES[:-1], SIZES[1:], strict=True))
    extrapolated = times["dense"] * (num_weights / DENSE) ** 3
    return Row(
        "one exact `full` draw of all weights of 784-100-10 / dense Cholesky factor, extrapolated",
        times["ours"] / extrapolated,
        "<= 1e-3",
        {"seconds": {**times, "dense, extrapolated": extrapolated}, "weights": num_weights, "dense measured at": DENSE},
    )
