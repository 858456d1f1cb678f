"""Another value for every parameter of every estimator that keeps checkpoints; `test_checkpoint_settings` tries each.

A case is a value and, where the value alone would change nothing, the other parameters that both fits have.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines, kernels
from metaprior.inputs import Projection
from metaprior.weight_gp import Full, Pathwise


class Case(NamedTuple):
    """A parameter, the other value for it, and the parameters that stay the same."""

    name: str
    value: Any
    same: dict[str, Any]


#: What every estimator is given, where it has the parameter: a fit of two blocks of steps.
SMALL = {
    "hidden_layer_sizes": (2,),
    "max_iter": 200,
    "random_state": 0,
    "n_warmup": 60,
    "n_samples": 60,
    "n_chains": 2,
    "max_tree_depth": 3,
    "n_members": 2,
    "n_predict_draws": 16,
    "dtype": "float32",
}
DRAWN = {"output_layer": "drawn"}
LOCAL = {"input_kernel": "rbf"}
HELD_OUT = {"early_stopping": True}


def bent_by(slope: float) -> Any:
    """Return an activation that has a name, and a number that is part of no name."""
    return lambda x: jnp.tanh(slope * x)


def masked_by(factors: list[float]) -> optax.GradientTransformation:
    """Return an optimizer that keeps a long array in a closure."""
    scale = np.resize(np.asarray(factors, np.float32), 64)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return jax.tree.map(lambda leaf: -jnp.asarray(scale, leaf.dtype)[: leaf.size].sum() * leaf, updates), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def injected(rate: float) -> optax.GradientTransformation:
    """Return an optimizer whose rate is a number of its state, and no part of a program."""
    return optax.inject_hyperparams(optax.sgd)(learning_rate=rate)


def rbf_of(lengthscale: float) -> Any:
    """Return a user's own kernel."""
    return kernels.Custom(lambda a, b: jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, -1) / lengthscale))


def bounded(highest: float) -> kernels.Kernel:
    return kernels.RBF(lengthscale=1.0, bounds={"lengthscale": (0.5, highest)})


#: For every parameter: the other values, each alone or with the parameters that both fits have.
OTHERS: dict[str, list[Any]] = {
    "hidden_layer_sizes": [(3,), (2, 2)],
    "activation": ["relu", "gelu", jnp.sin, bent_by(2.0), (bent_by(2.0), {"activation": bent_by(3.0)})],
    "latent_dim": [3],
    "input_kernel": [
        "rbf",
        ("matern32", LOCAL),
        ("periodic", LOCAL),
        (bounded(2.0), {"input_kernel": bounded(3.0)}),
        (kernels.RBF(fixed=["lengthscale"]), {"input_kernel": kernels.RBF()}),
    ],
    "weight_kernel": [
        "matern32",
        (bounded(2.0), {"weight_kernel": bounded(3.0)}),
        (rbf_of(2.0), {**DRAWN, "conditional": "full", "weight_kernel": rbf_of(3.0)}),
    ],
    "weight_gp": ["shared"],
    "local_layers": [((0,), {**DRAWN, **LOCAL})],
    "mean_field_layers": [(0,)],
    "residual_layers": ["all"],
    "heteroscedastic_weights": [True],
    "input_projection": [(1, LOCAL), (Projection((1,), "tanh"), {**LOCAL, "input_projection": 1})],
    "input_scaling": ["joint"],
    "likelihood": ["student_t", "heteroscedastic"],
    "noise": [0.2, (0.3, {"noise": 0.2})],
    "noise_hold": [0.4, (0.6, {"noise_hold": 0.4})],
    "output_layer": ["drawn", "inducing_rows", "pseudo_observations"],
    "n_inducing_rows": [(5, {"output_layer": "inducing_rows"})],
    "n_inducing": [(4, DRAWN), 3],
    "conditional": [
        "fitc",
        ("full", DRAWN),
        (Pathwise(num_features=32), DRAWN),
        (Full(jitter=1e-4), {**DRAWN, "conditional": "full"}),
    ],
    "uncertain_hypers": [False],
    "max_iter": [300],
    "batch_size": [5],
    "learning_rate_init": [0.05],
    "optimizer": [
        optax.sgd(0.01),
        (optax.adam(0.01, b1=0.5), {"optimizer": optax.adam(0.01)}),
        (injected(0.02), {"optimizer": injected(0.01)}),
        (masked_by([0.001, 0.002]), {"optimizer": masked_by([0.001, 0.003])}),
        (optax.sgd(optax.cosine_decay_schedule(0.01, 150)), {"optimizer": optax.sgd(0.01)}),
    ],
    "n_train_draws": [2],
    "n_weight_draws": [(2, DRAWN)],
    "n_predict_draws": [8],
    "n_restarts": [1],
    "early_stopping": [True],
    "validation_fraction": [(0.3, HELD_OUT)],
    "n_iter_no_change": [(1, HELD_OUT), (1, {"tol": 0.5})],
    "tol": [0.5, (0.5, HELD_OUT)],
    "warm_start": [True],
    "dtype": ["float64"],
    "devices": [1],
    "random_state": [1],
    "verbose": [True],
    "kernel": ["matern32", (bounded(2.0), {"kernel": bounded(3.0)})],
    "prior_scale": [0.5],
    "n_members": [1, 3],
    "prior": ["metagp"],
    "n_warmup": [50],
    "n_samples": [70],
    "n_chains": [1],
    "target_accept": [0.7],
    "max_tree_depth": [2],
    "structure": ["kronecker", "last_layer"],
    "mapping_units": [3],
    "weight_noise": ["implicit"],
}
#: Values that go with one estimator only, in place of those above.
OWN: dict[str, dict[str, list[Any]]] = {
    "HMC": {
        "latent_dim": [(3, {"prior": "metagp"})],
        "weight_kernel": [("matern32", {"prior": "metagp"})],
        "input_kernel": [("rbf", {"prior": "metagp"})],
    },
    "MetaGPClassifier": {
        "output_layer": ["drawn"],
        "n_inducing_rows": [5],
    },
}
#: Every estimator that keeps checkpoints: all but the exact GP, which refuses them.
ESTIMATORS: dict[str, Any] = {
    "MetaGPRegressor": MetaGPRegressor,
    "MetaGPClassifier": MetaGPClassifier,
    **{name: vars(baselines)[name] for name in baselines.__all__ if name != "ExactGPRegressor"},
}


def parameters_of(name: str) -> list[str]:
    """Return the parameters of an estimator: the fields of its dataclass."""
    return [field.name for field in dataclasses.fields(ESTIMATORS[name])]


def cases_of(name: str) -> list[Case]:
    """Return all cases of one estimator."""
    own = OWN.get(name, OWN.get(name.removesuffix("Regressor").removesuffix("Classifier"), {}))
    found = []
    for parameter in parameters_of(name):
        for other in own.get(parameter, OTHERS[parameter]):
            has_same = isinstance(other, tuple) and len(other) == 2 and isinstance(other[1], dict)
            found.append(Case(parameter, *(other if has_same else (other, {}))))
    return [case for case in found if set(case.same) <= set(parameters_of(name))]


def estimator(name: str, **changed: Any) -> Any:
    """Return a small estimator with some parameters changed."""
    known = parameters_of(name)
    return ESTIMATORS[name](**{key: value for key, value in SMALL.items() if key in known} | changed)
