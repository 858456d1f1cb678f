"""Maps of the input: what they compute, and how wide they are under the prior."""

import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.inputs import InputMap, Projection
from small import inputs, random_input_map


def test_identity_input_map_returns_the_input():
    identity, x = InputMap.identity(), inputs(5, 3)
    assert identity.num_normals == 0
    np.testing.assert_array_equal(identity(identity.draw(jnp.zeros(0)), x), x)


def test_layers_of_the_input_map_are_g_of_v_x_over_the_root_of_the_input_size():
    input_map = random_input_map(np.random.default_rng(0))
    x, normals = inputs(5, 2), np.random.default_rng(1).standard_normal(12)
    first = input_map.means[0] + np.exp(input_map.log_stds[0]) * normals[:6].reshape(3, 2)
    second = input_map.means[1] + np.exp(input_map.log_stds[1]) * normals[6:].reshape(2, 3)
    expected = np.tanh(np.tanh(np.asarray(x) @ first.T / np.sqrt(2)) @ second.T / np.sqrt(3))
    np.testing.assert_allclose(input_map(input_map.draw(jnp.asarray(normals)), x), expected, atol=1e-5)


def test_projections_of_standardised_inputs_have_unit_spread_under_the_prior():
    x = np.random.default_rng(2).standard_normal((400, 50))
    maps = [InputMap.initial(50, Projection((3,)), np.random.default_rng(s)) for s in range(40)]
    squares = [np.mean(np.asarray(m([jnp.asarray(m.means[0])], jnp.asarray(x))) ** 2) for m in maps]
    assert abs(np.mean(squares) - 1) < 4 * np.std(squares) / np.sqrt(len(squares))


@pytest.mark.parametrize("dims", [(), (0,), (2, -1)])
def test_projection_refuses_sizes_that_are_not_positive_whole_numbers(dims):
    with pytest.raises(ValueError, match="dims must be positive whole numbers"):
        Projection(dims)
