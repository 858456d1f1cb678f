"""A description of a model for `metaprior fit`, `metaprior info` and `metaprior explain`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metaprior.tables import Schema
    from metaprior.tables.model import TableModel


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
    from metaprior.tables.columns import Date

    kernel, search = estimator.input_kernel_, getattr(estimator, "kernel_search_", None)
    found: dict[str, Any] = {"input_kernel": None if kernel is None else " ".join(repr(kernel).split())}
    if kernel is not None:
        units = {column.name: "days" for column in schema.columns if isinstance(column, Date)}
        found["input_kernel_in_words"] = kernel_phrase(kernel, schema.features(), units)
    if search is not None:
        found["kernel_search"] = search.to_dict("records")
    return found


def kernel_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a description says of the input kernel, as a table of two columns."""
    rows = [("input kernel", data["input_kernel"] or "none: the weights are the same at every input")]
    if "input_kernel_in_words" in data:
        rows.append(("in words", data["input_kernel_in_words"]))
    if "kernel_search" in data:
        rows.append(("chosen", _choice(data["kernel_search"])))
    return rows


def _choice(candidates: list[dict[str, Any]]) -> str:
    """Return which candidate a fit took, and how far the next one is behind."""
    taken = next(row for row in candidates if row["taken"])
    others = sorted((row for row in candidates if not row["taken"]), key=lambda row: row["behind"])
    if not others:
        return f"{taken['kernel']}, the only candidate"
    first, nats = others[0], others[0]["behind"]
    how = f"{nats:.1f} nats above {first['kernel']}, the next"
    if nats < 0:
        how = f"because it is simpler than {first['kernel']}, whose bound is only {-nats:.1f} nats higher"
    return f"{taken['kernel']}, by the bound, out of {len(candidates)} candidates: {how}"
