"""Convert the files that loops of earlier versions wrote to the present form."""

from collections.abc import Callable
from typing import Any

from metaprior.io.plain import restore_estimator

Content = dict[str, Any]


def present_content(kind: str, content: Content) -> Content:
    """Return the content of a file in the present form, with settings, state and model."""
    return content if "state" in content else _EARLIER[kind](content)


def _active(content: Content) -> Content:
    old, ledger = content["settings"], content["ledger"]
    kept = ("X", "labelled", "test", "warm_start", "warm_iter", "random_state")
    settings = {name: old[name] for name in kept} | {"acquisition": content["acquisition"]}
    state = {
        "rows": tuple(ledger["rows"]),
        "values": tuple(ledger["values"]),
        "targets": ledger["targets"],
        "skipped": tuple(ledger["skipped"]),
        "pending": tuple(ledger["open_rows"]),
        "pending_values": tuple(ledger["open_values"]),
        "n_asked": ledger["num_asked"],
        "fits": tuple({("n_rows" if k == "num_rows" else k): v for k, v in fit.items()} for fit in ledger["fits"]),
    }
    return {
        "settings": {**settings, "n_queries": old["num_queries"], "n_initial": old["num_start"]},
        "state": state,
        "model": _model(content["model"]),
    }


def _optimise(content: Content) -> Content:
    settings = {name: content[name] for name in ("bounds", "acquisition", "warp", "random_state")}
    return {
        "settings": {**settings, "n_initial": content["num_initial"], "n_queries": 1},
        "state": {
            "X": content["X"],
            "y": content["y"],
            "pending": content["waiting"],
            "n_asked": content["num_asked"],
            "n_designed": content["num_designed"],
        },
        "model": _model(content["model"]),
    }


def _bandit(content: Content) -> Content:
    settings = dict(content["settings"])
    data = dict(content["data"])
    contexts, arms = data.pop("waiting")
    return {
        "settings": {"n_arms": settings.pop("num_arms"), **settings},
        "state": {**data, "pending_contexts": contexts, "pending_arms": arms},
        "model": None if content["model"] is None else _model(content["model"]),
    }


def _model(content: Content) -> Content:
    """Return a model. Its estimators were saved in parts."""
    return {
        "class_name": content["template"]["class"],
        "template": _estimator(content["template"]),
        "fitted": _estimator(content["fitted"]),
        "n_rows": content["num_rows"],
        **{name: content[name] for name in ("fresh_rows", "warm_iter", "warm_start")},
    }


def _estimator(parts: Content | None) -> Any:
    """Return an estimator, or None if there was none or one of another library."""
    if parts is None or "params" not in parts:
        return None
    return restore_estimator(parts["class"], parts["params"], parts["fit"] or {})


_EARLIER: dict[str, Callable[[Content], Content]] = {"active": _active, "optimise": _optimise, "bandit": _bandit}
