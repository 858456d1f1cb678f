"""The latents of units; and the KL of every Gaussian of q(z), q(V) and q(u) from its prior."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.inputs import InputMap
from metaprior.latents import UnitLatents
from metaprior.weight_gp import Diag, SparseGP
from small import random_input_map, small_metagp

RNG = np.random.default_rng(0)
UNITS = UnitLatents(RNG.standard_normal((4, 2)), np.log(RNG.uniform(0.2, 1.5, (4, 2))))
INPUT_MAP = random_input_map(RNG)
SPARSE_GP = small_metagp(Diag()).sparse_gps[0]


def test_kl_is_zero_where_q_is_the_prior():
    units = UnitLatents(np.zeros((4, 2)), np.zeros((4, 2)))
    input_map = InputMap((np.zeros((3, 2)),), (np.zeros((3, 2)),), jnp.tanh)
    m = SPARSE_GP.n_inducing
    sparse_gp = dataclasses.replace(
        SPARSE_GP, mean=np.zeros(m), log_diagonal=np.zeros(m), below_diagonal=np.zeros((m, m))
    )
    assert units.kl() == 0
    assert input_map.kl() == 0
    assert sparse_gp.kl() == 0
    assert InputMap.identity().kl() == 0


@pytest.mark.parametrize(
    ("part", "log_det"),
    [
        pytest.param(UNITS, np.sum(UNITS.log_std), id="units"),
        pytest.param(INPUT_MAP, sum(np.sum(s) for s in INPUT_MAP.log_stds), id="input map"),
        pytest.param(SPARSE_GP, np.sum(SPARSE_GP.log_diagonal), id="sparse GP"),
    ],
)
def test_kl_equals_monte_carlo(part, log_det):
    """E_q[log q - log p] over draws: with q = N(mean, R R'), log q - log p = (|draw|^2 - |normals|^2) / 2 - log |R|."""
    size = part.mean.shape[0] if isinstance(part, SparseGP) else part.num_normals
    normals = np.random.default_rng(1).standard_normal((20_000, size))
    draws = jax.vmap(part.draw)(jnp.asarray(normals))
    squares = sum(np.sum(np.asarray(d).reshape(len(normals), -1) ** 2, axis=1) for d in jax.tree.leaves(draws))
    each = 0.5 * (squares - np.sum(normals**2, axis=1)) - log_det
    error = each.std() / np.sqrt(len(each))
    assert abs(each.mean() - part.kl()) < 4 * error
    assert error < 0.02 * abs(each.mean())


def test_units_draw_has_mean_and_std():
    np.testing.assert_array_equal(UNITS.draw(jnp.zeros(8)), UNITS.mean.astype(np.float32))
    moved = UNITS.draw(jnp.ones(8)) - UNITS.mean
    np.testing.assert_allclose(moved, np.exp(UNITS.log_std), rtol=1e-5)
