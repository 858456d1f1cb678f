"""The normals of draws: their shapes, their streams, and the rows that they follow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.random import NormalCounts, draw_normals, draw_row_normals, make_key, step_key, take
from small import inputs

SIZES = NormalCounts(latents=4, weights=3, spectral=2, per_row=5)


def test_weight_draws_of_one_latent_draw_share_its_units_and_nothing_else():
    noise = draw_normals(make_key(0), SIZES, num_rows=6, num_latent=3, num_weight=2)
    assert [n.shape for n in jax.tree.leaves(noise)] == [(6, 4), (6, 3), (6, 2), (6, 6, 5)]
    units = np.asarray(noise.latents).reshape(3, 2, 4)
    np.testing.assert_array_equal(units[:, 0], units[:, 1])
    own = np.concatenate([units[:, 0].ravel(), *[np.ravel(n) for n in (noise.weights, noise.spectral, noise.rows)]])
    assert len(np.unique(own)) == len(own)


def test_noise_is_standard_normal():
    noise = draw_normals(make_key(0), NormalCounts(weights=50_000), 0, 1)
    values = np.asarray(noise.weights).ravel()
    for power, moment, spread in [(1, 0, 1), (2, 1, 2), (4, 3, 96)]:  # E[n^p] and var[n^p]
        assert abs(np.mean(values**power) - moment) < 4 * np.sqrt(spread / values.size)


def test_temperature_scales_all_but_the_frequencies():
    noise = draw_normals(make_key(0), SIZES, 2, 1)
    cold = noise.tempered(0.0)
    np.testing.assert_array_equal(cold.spectral, noise.spectral)
    assert all(np.all(np.asarray(part) == 0) for part in (cold.latents, cold.weights, cold.rows))


@pytest.mark.parametrize("shape", [(2, 2), (2, 3)], ids=["too few", "too many"])
def test_take_refuses_shapes_that_do_not_use_up_the_normals(shape):
    with pytest.raises(ValueError, match="expected shapes that use 5 normals"):
        take(jnp.zeros(5), shape)


def test_take_cuts_in_order():
    first, second = take(jnp.arange(5.0), (2,), (1, 3))
    np.testing.assert_array_equal(first, [0, 1])
    np.testing.assert_array_equal(second, [[2, 3, 4]])


def test_row_noise_follows_the_row_and_not_its_place():
    x = np.asarray(inputs(4, 2), np.float32)
    noise = draw_row_normals(make_key(0), jnp.asarray(x), 3, 5)
    order = np.array([2, 0, 3])
    np.testing.assert_array_equal(draw_row_normals(make_key(0), jnp.asarray(x[order]), 3, 5), noise[:, order])
    assert len(np.unique(noise)) == noise.size  # other rows, other draws, other normals
    assert not np.any(draw_row_normals(make_key(1), jnp.asarray(x), 3, 5) == noise)
    assert draw_row_normals(make_key(0), jnp.asarray(x), 3, 0).shape == (3, 4, 0)


def test_equal_rows_have_equal_noise_whatever_the_sign_of_their_zeros():
    noise = draw_row_normals(make_key(0), jnp.asarray([[0.0, 1.0], [-0.0, 1.0]]), 3, 5)
    np.testing.assert_array_equal(noise[:, 0], noise[:, 1])


def test_steps_draw_from_streams_that_do_not_meet():
    """No 64-bit word of one step's stream is in another's: a counter moved by a few blocks would repeat them."""
    keys = [step_key(make_key(seed), jnp.asarray(step)) for seed in (0, 1) for step in (0, 1, 2, 3000)]
    words = [np.asarray(jax.random.bits(key, (20_000,), jnp.uint32)).view(np.uint64) for key in keys]
    assert len(np.unique(np.concatenate(words))) == sum(len(w) for w in words)
    assert np.array_equal(words[0], np.asarray(jax.random.bits(make_key(0), (20_000,), jnp.uint32)).view(np.uint64))
