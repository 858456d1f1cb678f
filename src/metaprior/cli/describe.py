"""A description of a model for `metaprior fit` and `metaprior info`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metaprior.tables.model import TableModel


def searched(estimator: Any) -> list[dict[str, Any]] | None:
    """Return the candidates for the input kernel with their bounds; None where the user has named it."""
    columns = vars(estimator).get("_kernel_search")
    if columns is None:
        return None
    rows = zip(columns["kernel"].tolist(), columns["bound"].tolist(), columns["taken"].tolist(), strict=True)
    return [{"kernel": name, "bound": round(bound, 2), "taken": taken > 0} for name, bound, taken in rows]


def chosen_in_words(search: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    """Return a line that says which candidate was taken, and by how many nats; none where there was no search."""
    if search is None:
        return []
    taken = next(row for row in search if row["taken"])
    best = next(row for row in search if not row["taken"])
    nats = taken["bound"] - best["bound"]
    side = "above" if nats >= 0 else "below"
    return [("chosen", f"{taken['kernel']}, {abs(nats):.1f} nats {side} {best['kernel']}, of {len(search)} candidates")]


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
        "kernel_search": searched(estimator),
        **model.summary,
    }
