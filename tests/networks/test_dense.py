"""Dense networks: how they number their units and push activations through their layers."""

import numpy as np
import pytest

from metaprior.networks import Dense
from small import inputs


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3, 2), (5, 4, 3, 2)])
def test_dense_numbers_every_unit_once(sizes):
    network = Dense(sizes)
    inputs_of = [unit for w in network.weight_layers for unit in w.inputs]
    assert [*inputs_of, *network.weight_layers[-1].outputs] == list(range(network.num_units))
    for before, after in zip(network.weight_layers[:-1], network.weight_layers[1:], strict=True):
        assert before.outputs == after.inputs[:-1]  # the same units; the bias unit has no weights into it
    expected = [(a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
    assert [w.num_weights for w in network.weight_layers] == expected


@pytest.mark.parametrize("sizes", [(3,), (2, 0, 1)])
def test_dense_refuses_too_few_or_empty_layers(sizes):
    with pytest.raises(ValueError, match="at least two positive numbers"):
        Dense(sizes)


def test_dense_pushes_activations_with_the_bias_last():
    x = inputs(4, 2)
    first, second = np.asarray(inputs(3, 3, seed=1)), np.asarray(inputs(4, 2, seed=2))
    out = Dense((2, 3, 2), "tanh")([lambda h: h @ first, lambda h: h @ second], x)
    hidden = np.tanh(np.asarray(x) @ first[:2] + first[2])
    np.testing.assert_allclose(out, hidden @ second[:3] + second[3], rtol=1e-5, atol=1e-6)
