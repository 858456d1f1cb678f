"""A description of a model for `metaprior fit` and `metaprior info`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metaprior.tables.model import TableModel


def described(model: "TableModel") -> dict[str, Any]:
    """Return the description in values that JSON can hold."""
    schema, estimator = model.schema, model.estimator
    kernel = estimator.input_kernel_
    classes = {"classes": estimator.classes_.tolist()} if schema.target.task != "regression" else {}
    return {
        "estimator": type(estimator).__name__,
        "task": schema.target.task,
        "target": schema.target.name,
        **classes,
        "columns": {column.name: column.described() for column in schema.columns},
        "ignored": list(schema.ignored),
        "features": schema.features(),
        "network": list(estimator.model_.network.sizes),
        "weights": sum(weight_layer.num_weights for weight_layer in estimator.model_.network.weight_layers),
        "input_kernel": None if kernel is None else " ".join(repr(kernel).split()),
        **model.summary,
    }
