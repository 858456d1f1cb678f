"""Small fits of every estimator; as a program: refit those named until SIGINT comes, and say what fit is left.

For each name it prints "fitting NAME" and refits on two sets of data in turn. After the signal it prints "NAME whole"
if the estimator predicts bit for bit what one of the two whole fits does, and otherwise "NAME MIXED".
"""

import sys
from typing import Any

import numpy as np
import pandas as pd

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines, multitask

#: What every estimator is given, where it has the parameter.
SMALL = {
    "hidden_layer_sizes": (2,),
    "max_iter": 20,
    "input_kernel": None,
    "random_state": 0,
    "n_warmup": 5,
    "n_samples": 5,
    "n_chains": 1,
    "max_tree_depth": 2,
    "n_members": 2,
    "n_predict_draws": 8,
}
ESTIMATORS: dict[str, Any] = {
    "MetaGPRegressor": MetaGPRegressor,
    "MetaGPClassifier": MetaGPClassifier,
    **{name: vars(baselines)[name] for name in baselines.__all__},
    **{name: vars(multitask)[name] for name in multitask.__all__},
}
X = np.random.default_rng(0).uniform(-1, 1, (14, 2))


def pair(name: str, *, other: bool) -> tuple[Any, ...]:
    """Return the arguments of a fit; the other data have other units, and their columns have no names."""
    x = 50 + 7 * X[::-1] if other else pd.DataFrame(X, columns=["width", "height"])
    y = 1000 + 30 * X[:, 1] if other else np.sin(3 * X[:, 0])
    y = y if name.endswith("Regressor") else np.where(y > np.median(y), "yes", "no")
    return ({"a": (x, y), "b": (x[:9], y[:9])},) if name.startswith("MultiTask") else (x, y)


DATA = {name: (pair(name, other=False), pair(name, other=True)) for name in ESTIMATORS}


def make(name: str) -> Any:
    """Return a small estimator."""
    cls = ESTIMATORS[name]
    known = cls().get_params(deep=False)
    return cls(**{key: value for key, value in SMALL.items() if key in known})


def answers(name: str, model: Any) -> bytes:
    """Return the bits of the predictions."""
    task = {"task": "b"} if name.startswith("MultiTask") else {}
    ask = model.predict if name.endswith("Regressor") else model.predict_proba
    return np.asarray(ask(X, **task)).tobytes()


def main(names: list[str]) -> None:
    for name in names:
        model, whole = make(name), set()
        for data in DATA[name]:
            whole.add(answers(name, model.fit(*data)))
        print(f"fitting {name}", flush=True)
        try:
            while True:
                for data in DATA[name]:
                    model.fit(*data)
        except KeyboardInterrupt:
            print(f"{name} {'whole' if answers(name, model) in whole else 'MIXED'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
