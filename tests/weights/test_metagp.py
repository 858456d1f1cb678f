"""What a MetaGP is made of: which layers share a GP, their order, the parts of its KL."""

import equinox as eqx
import numpy as np
import pytest

from metaprior.inputs import Projection
from metaprior.kernels import RBF
from metaprior.weight_gp import Diag, Pathwise
from metaprior.weights import MetaGPSpec
from metaprior.weights.start import layer_groups
from small import inputs, noise_of, small_metagp


def test_a_weight_models_kl_has_the_parts_of_its_variables():
    local = small_metagp(Diag(), input_kernel=RBF(), projection=Projection((2,)), weight_gp="per_layer")
    parts = local.kl()
    assert set(parts) == {"kl_z", "kl_u", "kl_V"}
    np.testing.assert_allclose(parts["kl_u"], sum(m.kl() for m in local.sparse_gps), rtol=1e-6)
    assert set(small_metagp(Diag()).kl()) == {"kl_z", "kl_u"}


@pytest.mark.parametrize(
    ("options", "groups", "local"),
    [
        ({}, ((0, 1, 2),), (False,)),
        ({"input_kernel": RBF()}, ((0, 1, 2),), (True,)),
        ({"weight_gp": "per_layer"}, ((0,), (1,), (2,)), (False, False, False)),
        ({"input_kernel": RBF(), "local_layers": (-1,)}, ((0, 1), (2,)), (False, True)),
        ({"input_kernel": RBF(), "local_layers": (0, 2)}, ((1,), (0, 2)), (False, True)),
        (
            {"input_kernel": RBF(), "local_layers": (1,), "weight_gp": "per_layer"},
            ((0,), (1,), (2,)),
            (False, True, False),
        ),
        ({"local_layers": (1,)}, ((0, 1, 2),), (False,)),
    ],
)
def test_layers_share_a_gp_with_those_of_their_kind(options, groups, local):
    assert layer_groups(3, MetaGPSpec(**options)) == (groups, local)


def test_layer_groups_refuse_layers_and_sharing_that_are_not_there():
    with pytest.raises(ValueError, match="the network has 3 layers"):
        layer_groups(3, MetaGPSpec(input_kernel=RBF(), local_layers=(3,)))
    with pytest.raises(ValueError, match="expected 'shared' .* or 'per_layer'"):
        layer_groups(3, MetaGPSpec(weight_gp="network"))


def test_layers_of_interleaved_groups_come_back_in_order():
    model = small_metagp(Pathwise(4), (2, 3, 4, 1), input_kernel=RBF(), local_layers=(0, 2))
    weights = eqx.filter_eval_shape(
        lambda n: model.prepared().draw(n).weights(inputs(5, 2), n.rows), noise_of(model, 5)
    )
    assert [w.shape for w in weights] == [(5, 3, 3), (4, 4), (5, 5, 1)]
