"""The hierarchical MetaGP model for samplers: every quantity is one value, with its prior.

z ~ N(0, I), v ~ N(0, I), e ~ N(0, I), hyper-parameters log-normal around their starting values;
w = s (L_w v + sigma_w e),  L_w L_w' = k_in(z_in, z_in) k_out(z_out, z_out) over the codes of all weights.
In a local model the values of the GP at the data are a matrix, weights by rows, with a Kronecker covariance:
F = L_w V L_a', L_a L_a' = k_aux(X, X). At other inputs F is drawn from the conditional of the GP, jointly over rows.
There are no inducing codes and no approximation. A step costs W^3 (and N^3), so this is for small networks only.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, Network, WeightLayer
from metaprior.numerics import jittered_cholesky, jittered_inverse_root
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Fixed, Leaf
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel, switched
from metaprior.weights.point import ExplicitDraw, gaussian_log_density

#: The centre of the prior of sigma_w, relative to the scale of a layer.
WEIGHT_NOISE = 0.1
JITTER = 1e-6
#: The largest number of weights. Their covariance is factored at every step of a chain.
MOST_WEIGHTS = 2000


class HierarchicalMetaGP(WeightModel):
    """One value of z, of the whitened weights and of the hyper-parameters, with their log prior."""

    z: Float[Leaf, "U Dz"]
    values: Float[Leaf, "W _"]
    noise_normals: Float[Leaf, " W"]
    kernel_in: Kernel
    kernel_out: Kernel
    input_kernel: Kernel | None
    log_scale: Float[Leaf, "L 2"]
    log_weight_noise: Float[Leaf, ""]
    centres: Fixed
    inputs: Fixed
    weight_layers: tuple[WeightLayer, ...] = eqx.field(static=True)
    at_the_data: bool = eqx.field(static=True, default=True)

    @classmethod
    def initial(
        cls,
        network: Network,
        latent_dim: int,
        weight_kernel: Kernel,
        input_kernel: Kernel | None,
        inputs: np.ndarray,
        rng: np.random.Generator,
    ) -> "HierarchicalMetaGP":
        """Start from a draw of the prior, with hyper-parameters at their centres."""
        weight_layers = network.weight_layers
        num_weights = sum(w.num_weights for w in weight_layers)
        if num_weights > MOST_WEIGHTS:
            raise ValueError(
                f"prior='metagp': expected at most {MOST_WEIGHTS} weights, as every step factors their covariance; "
                f"got {num_weights}. Use fewer features or units, or prior='normal'."
            )
        kernel = weight_kernel.bound_to(latent_dim)
        log_scale = np.array([[-0.5 * np.log(len(w.inputs) - 1), 0.0] for w in weight_layers])
        log_noise = np.asarray(np.log(WEIGHT_NOISE))
        return cls(
            z=rng.standard_normal((network.num_units, latent_dim)),
            values=rng.standard_normal((num_weights, 1 if input_kernel is None else len(inputs))),
            noise_normals=rng.standard_normal(num_weights),
            kernel_in=kernel,
            kernel_out=kernel,
            input_kernel=input_kernel,
            log_scale=log_scale,
            log_weight_noise=log_noise,
            centres=Fixed((kernel, kernel, input_kernel, log_scale, log_noise)),
            inputs=Fixed(np.zeros((0, 0)) if input_kernel is None else np.asarray(inputs)),
            weight_layers=weight_layers,
        )

    @property
    def start_jitter(self) -> float:
        """The relative jitter with which factorisations start."""
        return JITTER

    def hypers(self) -> tuple[Any, ...]:
        """Return all hyper-parameters, in the order of `centres`."""
        return (self.kernel_in, self.kernel_out, self.input_kernel, self.log_scale, self.log_weight_noise)

    def sizes(self) -> NormalCounts:
        """Return the normals of each row; at the data nothing is drawn."""
        none = self.input_kernel is None or self.at_the_data
        return NormalCounts(per_row=0 if none else self.noise_normals.shape[-1])

    def for_prediction(self) -> "HierarchicalMetaGP":
        """Return the model that draws the GP at new inputs, given its values at the data."""
        return switched(self, at_the_data=False)

    def prepared(self) -> "PreparedHierarchical":
        """Factor the covariance of the weights and, in a local model, of the inputs. Cost W^3 + N^3."""
        layer_latents = [self._layer_latents(w) for w in self.weight_layers]
        z_in, z_out = (jnp.concatenate([pair[side] for pair in layer_latents]) for side in (0, 1))
        jitter = jnp.asarray(JITTER, z_in.dtype)
        factor, used = jittered_cholesky(self.kernel_in(z_in, z_in) * self.kernel_out(z_out, z_out), jitter)
        inverse = jnp.zeros((0, 0))
        if self.input_kernel is not None:
            inverse, also = jittered_inverse_root(self.input_kernel(self.inputs.value, self.inputs.value), jitter)
            used = jnp.maximum(used, also)
        return PreparedHierarchical(self, factor, inverse, used)

    def _layer_latents(self, weight_layer: WeightLayer) -> tuple[Array, Array]:
        """Return the latents of both units of every weight of a layer."""
        rows, columns = np.meshgrid(weight_layer.inputs, weight_layer.outputs, indexing="ij")
        z = jnp.asarray(self.z)
        return z[rows.ravel()], z[columns.ravel()]

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return -log prior of the latents, of the whitened weights and of the hyper-parameters."""
        moved = jax.tree.map(lambda now, centre: now - centre, self.hypers(), self.centres.value)
        return {
            "kl_z": -gaussian_log_density([self.z], 1.0),
            "kl_v": -gaussian_log_density([self.values, self.noise_normals], 1.0),
            "kl_hyper": -gaussian_log_density(jax.tree.leaves(moved), 1.0),
        }

    @property
    def couples_rows(self) -> bool:
        """Whether rows are drawn jointly, which a local model does."""
        return self.input_kernel is not None

    def scales(self) -> Float[Array, " W"]:
        """Return the scale of every weight."""
        parts = []
        for layer, weight_layer in enumerate(self.weight_layers):
            weight, bias = jnp.exp(self.log_scale[layer])
            column = jnp.full(len(weight_layer.inputs), weight).at[-1].set(bias)
            parts.append(jnp.repeat(column, len(weight_layer.outputs)))
        return jnp.concatenate(parts)

    def by_layer(self, flat: Float[Array, "W *r"]) -> list[Array]:
        """Split the weights into layers of shape [I, J, ...]."""
        layer_latents = np.cumsum([w.num_weights for w in self.weight_layers])
        parts = jnp.split(flat, layer_latents[:-1].tolist())
        shapes = [(len(w.inputs), len(w.outputs)) for w in self.weight_layers]
        return [part.reshape(*shape, *flat.shape[1:]) for part, shape in zip(parts, shapes, strict=True)]


class PreparedHierarchical(PreparedWeights):
    """A hierarchical model with its covariances factored."""

    model: HierarchicalMetaGP
    factor: Float[Array, "W W"]
    inverse: Float[Array, "N N"]
    used_jitter: Float[Array, ""]

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a factor needed."""
        return self.used_jitter

    def draw(self, normals: StandardNormals) -> WeightDraw:
        """Return the weights; in a local model they are functions of the input."""
        model = self.model
        shared = jnp.exp(model.log_weight_noise) * model.noise_normals
        if model.input_kernel is None:
            flat = model.scales() * (self.factor @ model.values[:, 0] + shared)
            return ExplicitDraw(model.by_layer(flat))
        return LocalHierarchicalDraw(self, model.input_kernel, shared)


class LocalHierarchicalDraw(WeightDraw):
    """Weights as values of a GP in the input, given its values at the data."""

    prepared: PreparedHierarchical
    kernel: Kernel
    shared: Float[Array, " W"]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return [B, I, J] per layer: the mean given the values at the data, plus a draw of the rest at new inputs."""
        prepared, model, kernel = self.prepared, self.prepared.model, self.kernel
        cross = kernel(x, model.inputs.value) @ prepared.inverse.T  # [B, N]
        whitened = model.values @ cross.T
        if not model.at_the_data:
            open_, _ = jittered_cholesky(kernel(x, x) - cross @ cross.T, jnp.asarray(JITTER, x.dtype))
            whitened = whitened + rows.T @ open_.T
        f = prepared.factor @ whitened
        flat = model.scales()[:, None] * (f + self.shared[:, None])
        return [jnp.moveaxis(w, -1, 0) for w in model.by_layer(flat)]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return layers that multiply each row by its own weights."""

        def layer(weights: Array) -> Layer:
            return lambda h: jnp.einsum("bi,bij->bj", h, weights)

        return [layer(w) for w in self.weights(x, rows)]
