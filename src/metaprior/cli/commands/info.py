"""`metaprior info`: describe the content of a model's file."""

import argparse
from typing import Any

from metaprior.cli.describe import described, kernel_rows
from metaprior.cli.held_out_scores import described_scores
from metaprior.cli.options import add_model, check_inputs
from metaprior.cli.other_files import other_file
from metaprior.cli.result import Result, aligned, counted

SUMMARY = "show what is in a model's file: columns, sizes, versions, how the fit went"
EXAMPLES = """\
  metaprior info model.metaprior
  metaprior info model.metaprior --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_model(parser)


def run(args: argparse.Namespace) -> Result:
    """Read the file and describe it."""
    check_inputs(args)  # before the imports, which take a second

    from metaprior.io.saving import load, origin
    from metaprior.tables.model import TableModel

    try:
        model = load(args.model)
    except ValueError:
        found = other_file(args.model)
        if found is None:
            raise
        return found
    data = {"model": args.model, **origin(args.model)}
    if not isinstance(model, TableModel):
        return _of_estimator(model, data)
    data |= {**described(model), "parameters": _changed(model.estimator)}
    return Result(data, _text(data))


def _of_estimator(model: Any, data: dict[str, Any]) -> Result:
    """Describe an estimator that was saved from Python."""
    features = vars(model).get("n_features_in_")
    data |= {"estimator": type(model).__name__, "num_features": features, "parameters": _changed(model)}
    head = f"{data['model']}: {data['estimator']} of {features} features, saved from Python by metaprior"
    return Result(data, f"{head} {data['written_by']}\n{_parameters(data)}")


def _changed(estimator: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults."""
    usual = type(estimator)().get_params(deep=False)
    own = estimator.get_params(deep=False)
    return {k: " ".join(repr(v).split()) for k, v in own.items() if repr(v) != repr(usual[k])}


def _parameters(data: dict[str, Any]) -> str:
    rows = list(data["parameters"].items())
    return f"parameters that differ from the defaults:\n{aligned(rows)}" if rows else "all parameters are defaults"


def _text(data: dict[str, Any]) -> str:
    head = [
        ("target", f"{data['target']!r}, {data['task']}" + _classes(data)),
        ("estimator", f"{data['estimator']}, network {'-'.join(map(str, data['network']))}, {data['weights']} weights"),
        *kernel_rows(data),
        ("training", f"{data['rows']} rows, {data['steps']} steps, ELBO {data['elbo']:.1f}"),
        ("versions", ", ".join(f"{name} {number}" for name, number in data["versions"].items())),
        ("left out", ", ".join(map(repr, data["ignored"])) or "none"),
    ]
    if "holdout" in data:
        head += described_scores(data["holdout"], data["target"])
    columns = aligned(list(data["columns"].items()))
    return (
        f"{data['model']}: a model for tables, format {data['format']}\n{aligned(head)}\n"
        f"columns ({counted(len(data['features']), 'feature')}):\n{columns}\n{_parameters(data)}"
    )


def _classes(data: dict[str, Any]) -> str:
    return f" into {', '.join(map(repr, data['classes']))}" if "classes" in data else ""
