"""The latents of units; and the KL of every Gaussian of q(z), q(V) and q(u) from its prior."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from chosen import EPS, few, numbers
from metaprior.inputs import InputMap
from metaprior.latents import UnitLatents
from metaprior.networks.activations import activation_named
from metaprior.weight_gp import Diag, SparseGP, Whitened
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


MEANS, LOG_STDS = numbers(-10, 10, (3, 2)), numbers(-10, 3, (3, 2))


@few
@given(mean=MEANS, log_std=LOG_STDS)
def test_the_divergence_of_independent_gaussians_is_not_negative_and_equals_numpys(mean, log_std):
    with jax.enable_x64(True):
        of_units = float(UnitLatents(mean, log_std).kl())
        of_map = float(InputMap((mean,), (log_std,), activation_named("identity")).kl())
    terms = 0.5 * (np.exp(2 * log_std) + mean**2 - 1) - log_std
    rounding = 10 * EPS * np.sum(np.exp(2 * log_std) + mean**2 + 1 + np.abs(log_std))
    assert of_units >= -rounding
    assert_allclose([of_units, of_map], np.sum(terms), rtol=0, atol=rounding)


@few
@given(mean=numbers(-10, 10, 3), log_diagonal=numbers(-10, 3, 3), below=numbers(-5, 5, (3, 3)))
def test_the_divergence_of_whitened_values_is_not_negative_and_equals_the_dense_formula(mean, log_diagonal, below):
    with jax.enable_x64(True):
        ours = float(Whitened(mean, log_diagonal, below).kl())
    factor = np.tril(below, -1) + np.diag(np.exp(log_diagonal))
    trace = np.trace(factor @ factor.T) + mean @ mean
    # KL[N(m, S) || N(0, I)] = (tr S + |m|^2 - M - log |S|) / 2
    twin = 0.5 * (trace - 3 - 2 * np.sum(log_diagonal))
    rounding = 20 * EPS * (trace + 3 + np.sum(np.abs(log_diagonal)))
    assert ours >= -rounding
    assert_allclose(ours, twin, rtol=0, atol=rounding)
