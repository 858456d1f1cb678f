"""Fit the models that the explorer ships, and write their parameters to `models.js`: `python docs/explorer/export.py`.

The page computes means, bands and drawn functions from these parameters alone: q(z) of the last hidden units, q(u) of
the hidden layers, hyper-parameters, and the standardised rows of the data. The file is a script and not plain JSON,
because browsers let a page that was opened from disk run scripts but not read other files.
"""

import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metaprior import MetaGPRegressor, kernels
from metaprior.io.atomic import write_atomically
from metaprior.kernels import Kernel
from metaprior.kernels.hyper_kernel import HyperKernel

FORMAT = 1
HERE = Path(__file__).parent
#: What stands in the file around the JSON text.
BEFORE, AFTER = "(globalThis.explorer ??= {}).models = ", ";\n"
#: Significant digits of a number: standard deviations of 1e-3 keep four.
DIGITS = 7
#: The names of the simple kernels on the page.
KINDS: dict[type[Kernel], str] = {
    kernels.RBF: "rbf",
    kernels.Matern12: "matern12",
    kernels.Matern32: "matern32",
    kernels.Matern52: "matern52",
    kernels.Periodic: "periodic",
    kernels.Linear: "linear",
    kernels.Constant: "constant",
}


# --- the data sets --------------------------------------------------------------------


def sinusoid(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a wave of period 1.67 with a gap in the middle."""
    x = np.sort(rng.uniform(0.5, 2, 60) * rng.choice([-1, 1], 60))
    return x, np.sin(2 * np.pi * 0.6 * x) + 0.1 * rng.standard_normal(60)


def pulses(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return short pulses that come every 1.5."""
    x = np.sort(rng.uniform(-3, 3, 80))
    return x, np.exp(4 * (np.cos(2 * np.pi * x / 1.5) - 1)) + 0.05 * rng.standard_normal(80)


def steps(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return three levels with sharp edges."""
    x = np.sort(rng.uniform(-2, 2, 80))
    return x, np.where(x < -0.6, -1.0, np.where(x < 0.7, 1.0, 0.2)) + 0.08 * rng.standard_normal(80)


def season(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a straight trend with a season."""
    x = np.sort(rng.uniform(0, 6, 80))
    return x, 0.5 * x + 0.8 * np.sin(2 * np.pi * x / 1.2) + 0.1 * rng.standard_normal(80)


def growing(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return waves that grow."""
    x = np.sort(rng.uniform(0, 5, 80))
    return x, 0.4 * x * np.sin(2 * np.pi * x) + 0.1 * rng.standard_normal(80)


def clusters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return x sin x, seen in two places only."""
    x = np.sort(np.concatenate([rng.uniform(-4, -2, 30), rng.uniform(1, 4, 30)]))
    return x, x * np.sin(x) + 0.2 * rng.standard_normal(60)


# --- the models -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Study:
    """One fitted model: a data set, an input kernel, and the layers."""

    name: str
    title: str
    data: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    kernel: Kernel | None
    hidden: tuple[int, ...] = (50,)
    activation: str = "tanh"

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the data, the same ones every time."""
        return self.data(np.random.default_rng(0))

    def estimator(self) -> MetaGPRegressor:
        """Return the model before it is fitted."""
        return MetaGPRegressor(
            input_kernel=self.kernel,
            hidden_layer_sizes=self.hidden,
            activation=self.activation,
            uncertain_hypers=False,
            random_state=0,
        )

    def fitted(self) -> MetaGPRegressor:
        """Fit the model."""
        x, y = self.rows()
        return self.estimator().fit(x[:, None], y)


STUDIES = (
    Study("sinusoid-periodic", "Wave with a gap: periodic kernel", sinusoid, kernels.Periodic()),
    Study("sinusoid-rbf", "Wave with a gap: RBF kernel", sinusoid, kernels.RBF()),
    Study("sinusoid-none", "Wave with a gap: no input kernel", sinusoid, None),
    Study("pulses-periodic", "Pulses: periodic kernel", pulses, kernels.Periodic()),
    Study("steps-matern", "Steps: Matern 3/2 kernel", steps, kernels.Matern32()),
    Study("steps-none", "Steps: no input kernel, two hidden layers", steps, None, hidden=(20, 20)),
    Study("season-sum", "Trend with a season: linear + periodic", season, kernels.Linear() + kernels.Periodic()),
    Study("season-rbf", "Trend with a season: RBF kernel", season, kernels.RBF(0.5)),
    Study("season-linear-rbf", "Trend with a season: linear + RBF", season, kernels.Linear() + kernels.RBF()),
    Study(
        "growing-product",
        "Growing waves: (linear + 1) x periodic",
        growing,
        (kernels.Linear() + 1) * kernels.Periodic(),
    ),
    Study("clusters-rbf", "Two clusters: RBF kernel", clusters, kernels.RBF()),
    Study("clusters-relu", "Two clusters: no input kernel, ReLU units", clusters, None, activation="relu"),
)


# --- parameters -----------------------------------------------------------------------


def parameters(study: Study, model: MetaGPRegressor) -> dict[str, Any]:
    """Return everything that the page needs of a fitted model, and a digest of it."""
    weights, x, y = model.model_.weights, *study.rows()
    units = weights.weight_layers[-1].inputs
    found = {
        "name": study.name,
        "title": study.title,
        "activation": study.activation,
        "data": {"x": numbers(x), "y": numbers(y)},
        "x_unit": numbers([model.x_offset_[0], model.x_scale_[0]]),
        "y_unit": numbers([model.y_offset_[0], model.y_scale_[0]]),
        "kernel": None if weights.input_kernel is None else kernel_of(weights.input_kernel),
        "lengthscale": numbers(weights.output.kernel_in.lengthscale),
        "weightNoise": number(np.exp(weights.output.weight_noise.log_std)),
        "noise": number(model.model_.likelihood.noise[0]),
        "scale": numbers(np.exp(weights.log_scale[-1])),
        "jitter": weights.start_jitter,
        "latents": gaussian(weights.latents.mean[list(units)], weights.latents.log_std[list(units)])
        | {"dim": weights.latents.mean.shape[1]},
        "hidden": [_hidden(weights, layer) for layer in range(len(weights.weight_layers) - 1)],
    }
    return found | {"digest": digest(found)}


def _hidden(weights: Any, layer: int) -> dict[str, Any]:
    """Return q(u) of a hidden layer, whose weights are u times their scale."""
    (own,) = [gp for gp, group in zip(weights.sparse_gps, weights.groups, strict=True) if group == (layer,)]
    if not own.whole:
        raise ValueError(f"hidden layer {layer}: expected all of its weights to be anchored; take fewer units.")
    ends = weights.weight_layers[layer]
    found = gaussian(own.mean, own.log_diagonal) | {
        "shape": [len(ends.inputs), len(ends.outputs)],
        "scale": numbers(np.exp(weights.log_scale[layer])),
    }
    if own.below_diagonal is not None:
        found["below"] = numbers(np.asarray(own.below_diagonal)[np.tril_indices(len(own.mean), -1)])
    return found


def gaussian(mean: Any, log_std: Any) -> dict[str, Any]:
    """Return the parameters of independent Gaussians."""
    return {"mean": numbers(mean), "log_std": numbers(log_std)}


def kernel_of(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel of one input as the page writes it."""
    if isinstance(kernel, kernels.Sum | kernels.Product):
        kind = "sum" if isinstance(kernel, kernels.Sum) else "product"
        return {"kind": kind, "left": kernel_of(kernel.left), "right": kernel_of(kernel.right)}
    if isinstance(kernel, kernels.Scaled):
        return {"kind": "scaled", "scale": number(kernel.scale), "inner": kernel_of(kernel.inner)}
    if not isinstance(kernel, HyperKernel) or type(kernel) not in KINDS:
        raise ValueError(f"kernel_of: expected one of the kernels that the page knows; got {kernel!r}.")
    hypers = {name: number(np.ravel(getattr(kernel, name))[0]) for name in kernel.declared}
    return {"kind": KINDS[type(kernel)], **hypers}


def number(value: Any) -> float:
    """Return a number with seven significant digits."""
    return float(f"{float(value):.{DIGITS}g}")


def numbers(values: Any) -> list[float]:
    """Return the numbers of an array, in one list."""
    return [number(value) for value in np.ravel(np.asarray(values))]


def digest(found: dict[str, Any]) -> str:
    """Return the digest of a model's parameters."""
    own = {name: value for name, value in found.items() if name != "digest"}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


# --- the file -------------------------------------------------------------------------


def text_of(models: Sequence[dict[str, Any]]) -> str:
    """Return the text of the file."""
    lines = ",\n".join(json.dumps(model, separators=(",", ":")) for model in models)
    return f'{BEFORE}{{"format":{FORMAT},"models":[\n{lines}\n]}}{AFTER}'


def read(path: Path) -> list[dict[str, Any]]:
    """Return the models of a file."""
    found = json.loads(path.read_text(encoding="utf-8").removeprefix(BEFORE).removesuffix(AFTER))
    if found["format"] != FORMAT:
        raise ValueError(f"{path.name}: expected format {FORMAT}; got {found['format']}. Run export.py.")
    return list(found["models"])


def main() -> None:
    """Fit all models and write the file."""
    models = []
    for study in STUDIES:
        model = study.fitted()
        models.append(parameters(study, model))
        print(f"{study.name}: {model.n_iter_} steps", file=sys.stderr)
    write_atomically(HERE / "models.js", text_of(models).encode())


if __name__ == "__main__":
    main()
