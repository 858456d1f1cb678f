"""Checks of the parameters for several tasks: drawn layers must be shared, and output layers integrated out."""

from typing import Any

from metaprior.estimators.checks import expect
from metaprior.estimators.config import is_auto
from metaprior.estimators.metagp_config import layers_named
from metaprior.estimators.metagp_method import MetaGPMethod
from metaprior.estimators.regime import REGIMES


def check_parameters(parameters: dict[str, Any], method: MetaGPMethod, single: str) -> None:
    """Raise an error if a parameter is wrong; `method` is that of one task, `single` the name of its estimator."""
    method.check()
    what = "a kernel, its name or None with several tasks ('auto' chooses for one table: fit one task alone)"
    expect("input_kernel", parameters["input_kernel"], what, not is_auto(parameters["input_kernel"]))
    warm, restarts = parameters["warm_start"], parameters["n_restarts"]
    expect("warm_start", warm, "False with several tasks (use `adapt` to add a task)", not warm)
    expect("n_restarts", restarts, "0 with several tasks", int(restarts) == 0)
    for name in ("mean_field_layers", "residual_layers"):
        what = "None with several tasks (all their weights come from the GP)"
        expect(name, parameters[name], what, parameters[name] is None)
    uncertain = parameters["uncertain_hypers"]
    what = "'auto' or False with several tasks, whose hyper-parameters are point estimates"
    expect("uncertain_hypers", uncertain, what, uncertain is not True)
    _check_output_layer(parameters, method, single)


def _check_output_layer(parameters: dict[str, Any], method: MetaGPMethod, single: str) -> None:
    """Raise an error if an output layer cannot be integrated out, or if a layer below it would not be shared."""
    num_layers = method.network.num_layers
    instead = f"to draw all weights, fit one {single} per task"
    regimes = " or ".join(f"'{name}'" for name in REGIMES if name != "drawn")
    integrated = f"with several tasks, whose output layers are integrated ({instead})"
    asked = parameters["output_layer"]
    expect("output_layer", asked, f"{regimes} {integrated}", asked != "drawn")
    expect("conditional", parameters["conditional"], f"'pathwise' or 'full' {integrated}", method.is_integrated)
    each, what = method.config.sharing(num_layers) == "per_layer", "every output layer has its own GP"
    expect("weight_gp", parameters["weight_gp"], f"'auto' or 'per_layer' with several tasks: {what}", each)
    local = layers_named("local_layers", parameters["local_layers"], num_layers)
    expect(
        "local_layers",
        parameters["local_layers"],
        "None or (-1,) with several tasks, because the layers below the last are shared and the input kernel is not",
        local is None or set(local) <= {num_layers - 1},
    )
