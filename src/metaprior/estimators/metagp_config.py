"""The parameters of a MetaGP: which layers have which prior, how they are drawn or integrated, and how often."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from metaprior.estimators.checks import expect, expect_auto_or_whole, expect_one_of, expect_whole, is_whole
from metaprior.estimators.config import Config, is_auto
from metaprior.estimators.data_kernel import Standardised
from metaprior.estimators.regime import REGIMES
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.weight_gp import FITC, Conditional, Diag, conditional_named


@dataclass(frozen=True)
class MetaGPConfig(Config):
    """The parameters; `MetaGPRegressor` says what they mean."""

    latent_dim: int
    n_inducing: int | str
    weight_kernel: Kernel | str | tuple[Any, ...] | None
    input_kernel: Kernel | Standardised | str | None
    weight_gp: str
    conditional: str | Conditional
    input_projection: int | Projection | None
    local_layers: Sequence[int] | None
    mean_field_layers: Sequence[int] | None
    residual_layers: Sequence[int] | str | None
    heteroscedastic_weights: bool
    output_layer: str
    n_inducing_rows: int | str
    uncertain_hypers: bool | str
    n_train_draws: int | str
    n_weight_draws: int
    n_predict_draws: int
    n_restarts: int

    @property
    def is_automatic(self) -> bool:
        """Whether the bound chooses the input kernel."""
        return is_auto(self.input_kernel)

    def with_kernel(self, kernel: Kernel | Standardised | None, projection: Projection | None = None) -> Self:
        """Return the same parameters with another input kernel, and another projection if there is one."""
        return dataclasses.replace(self, input_kernel=kernel, input_projection=projection or self.input_projection)

    def is_integrated(self, num_layers: int) -> bool:
        """Return whether the output layer is integrated, or every weight drawn as in the paper."""
        if self.output_layer != "auto":
            return self.output_layer != "drawn"
        by_row = isinstance(conditional_named(self.conditional), Diag | FITC)
        return not by_row and self.residual_layers is None and not self.last_is_mean_field(num_layers)

    def last_is_mean_field(self, num_layers: int) -> bool:
        """Return whether the output layer has no GP."""
        return num_layers - 1 in self.layers_without_gp(num_layers)

    def layers_without_gp(self, num_layers: int) -> tuple[int, ...]:
        """Return the layers whose weights are independent Gaussians."""
        return layers_named("mean_field_layers", self.mean_field_layers, num_layers) or ()

    def layers_of_gp(self, num_layers: int) -> list[int]:
        """Return the layers whose weights have the GP prior; at least one is needed."""
        below = self.layers_without_gp(num_layers)
        others = [layer for layer in range(num_layers) if layer not in below]
        if not others:
            raise ValueError(f"mean_field_layers: expected a layer to be left for the GP; got all {num_layers}.")
        return others

    def residual(self, num_layers: int) -> tuple[int, ...]:
        """Return the layers whose weights have a part of their own beside the GP's."""
        return self._among_gp("residual_layers", self.residual_layers, num_layers) or ()

    def local(self, num_layers: int) -> tuple[int, ...] | None:
        """Return which of the layers of the GP are local, counted among these; None: all."""
        named = self._among_gp("local_layers", self.local_layers, num_layers)
        if named is None:
            return (-1,) if self.is_integrated(num_layers) else None
        others = self.layers_of_gp(num_layers)
        return tuple(others.index(layer) for layer in named)

    def has_local_output(self, num_layers: int) -> bool:
        """Return whether the input kernel modulates the output layer."""
        chosen, last = self.local(num_layers), len(self.layers_of_gp(num_layers)) - 1
        return self.input_kernel is not None and (chosen is None or not {-1, last}.isdisjoint(chosen))

    def _among_gp(self, name: str, layers: Sequence[int] | str | None, num_layers: int) -> tuple[int, ...] | None:
        """Return layers that must be the GP's; "all" are those that have it."""
        others = self.layers_of_gp(num_layers)
        if isinstance(layers, str) and layers == "all":
            return tuple(others)
        named = layers_named(name, layers, num_layers)
        if named is not None and not set(named) <= set(others):
            raise ValueError(f"{name}: expected layers that have the GP, of {others}; got {layers!r}.")
        return named

    def sharing(self, num_layers: int) -> str:
        """Return which layers share a GP: "shared" or "per_layer"."""
        if self.weight_gp != "auto":
            return self.weight_gp
        return "per_layer" if self.is_integrated(num_layers) else "shared"

    def projection(self) -> Projection | None:
        """Return the projection of the inputs that the input kernel sees."""
        asked: Any = self.input_projection
        if is_whole(asked):
            return Projection((int(asked),))
        if not (asked is None or isinstance(asked, Projection)):
            raise ValueError(f"input_projection: expected a number of dimensions or a Projection; got {asked!r}.")
        return asked

    def check(self, num_layers: int) -> None:
        """Raise where a parameter is not as expected."""
        whole = {"latent_dim": 1, "n_weight_draws": 1, "n_restarts": 0, "n_predict_draws": 2}
        for name, lowest in whole.items():
            expect_whole(name, vars(self)[name], lowest)
        for name in ("n_inducing", "n_inducing_rows", "n_train_draws"):
            expect_auto_or_whole(name, vars(self)[name])
        uncertain = self.uncertain_hypers
        is_known = isinstance(uncertain, bool | np.bool_) or is_auto(uncertain)
        expect("uncertain_hypers", uncertain, "True, False or 'auto'", is_known)
        expect_one_of("output_layer", self.output_layer, REGIMES)
        if self.output_layer not in ("auto", "drawn"):
            self._check_can_integrate(num_layers)

    def _check_can_integrate(self, num_layers: int) -> None:
        """Raise where the output layer is to be integrated and another parameter stands against it."""
        name = f"output_layer={self.output_layer!r}"
        if isinstance(conditional_named(self.conditional), Diag | FITC):
            raise ValueError(
                f"{name}: expected conditional='pathwise' or 'full'; with {self.conditional!r} every row draws weights "
                "of its own, and there is no function to integrate over. Take output_layer='drawn' with it."
            )
        if self.residual_layers is not None:
            raise ValueError(f"{name}: expected residual_layers=None: anchored weights need none; or take 'drawn'.")
        if self.last_is_mean_field(num_layers):
            raise ValueError(f"{name}: expected a last layer with the GP; mean_field_layers names it, too.")


def layers_named(name: str, layers: Sequence[int] | str | None, num_layers: int) -> tuple[int, ...] | None:
    """Return layers of weights, counted from the input; None where none are named."""
    if layers is None:
        return None
    named: list[Any] = np.atleast_1d(np.asarray(layers)).tolist()
    if not all(is_whole(layer) and -num_layers <= layer < num_layers for layer in named):
        raise ValueError(
            f"{name}: the network has {num_layers} layers of weights (0 to {num_layers - 1}, or negative from the "
            f"end); got {layers!r}."
        )
    return tuple(sorted({int(layer) % num_layers for layer in named}))
