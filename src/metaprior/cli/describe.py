"""A description of a model for `metaprior fit`, `metaprior info` and `metaprior explain`."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metaprior.tables import Schema
    from metaprior.tables.model import TableModel


def searched(estimator: Any) -> list[dict[str, Any]] | None:
    """Return the candidates for the input kernel with their bounds; None where the user has named it."""
    columns = vars(estimator).get("_kernel_search")
    if columns is None:
        return None
    rows = zip(columns["kernel"].tolist(), columns["bound"].tolist(), columns["taken"].tolist(), strict=True)
    return [{"kernel": name, "bound": round(bound, 2), "taken": taken > 0} for name, bound, taken in rows]


def chosen_in_words(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a line that says which candidate was taken, and by how many nats; none where there was no search."""
    search = data["kernel_search"]
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
        **_kernel(estimator, schema),
        **model.summary,
    }


def _kernel(estimator: Any, schema: "Schema") -> dict[str, Any]:
    """Return the fitted input kernel as code and in words, and the candidates if the fit chose among some."""
    from metaprior.cli.kernel_phrases import kernel_phrase
    from metaprior.estimators.lengthscales import num_projections
    from metaprior.tables.columns import Date

    kernel = estimator.input_kernel_
    projections = [f"projection {number}" for number in range(1, num_projections(estimator) + 1)]
    features = projections or schema.features()
    units = {column.name: "days" for column in schema.columns if isinstance(column, Date)}
    return {
        "input_kernel": None if kernel is None else " ".join(repr(kernel).split()),
        "input_kernel_in_words": None if kernel is None else kernel_phrase(kernel, features, units),
        "kernel_search": searched(estimator),
    }


def kernel_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a description says of the input kernel, as a table of two columns."""
    if data["input_kernel"] is None:
        return [("input kernel", "none: the weights are the same at every input"), *chosen_in_words(data)]
    code = ("input kernel", with_short_numbers(data["input_kernel"]))
    return [code, ("in words", data["input_kernel_in_words"]), *chosen_in_words(data)]


def with_short_numbers(text: str) -> str:
    """Return code with at most four digits of each number that has a point."""
    return re.sub(r"\d+\.\d+(?:e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)
