"""Deep kernel learning: the hidden layers have point weights, and the last layer is one sparse GP per output.

f_k(x) ~ GP(0, s_k^2 kernel_k(h, h')) on the features h of the last hidden layer (on x itself if there is none). Each GP
is represented by q(v) at M inducing points, whitened in the same way as the GP over codes:

mean = s A' m,   cov = s^2 (K_hh - A' A + A' T T' A),   A = L^-1 K_uh,   L L' = K_uu          cost K M^2 (B + M)

Training draws every row from its marginal. Prediction draws the rows of one call jointly (`couples_rows`), so that a
draw is a function.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, Network
from metaprior.numerics import jittered_cholesky, jittered_inverse_root
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Leaf
from metaprior.weight_gp import Whitened
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel, switched
from metaprior.weights.point import gaussian_log_density, product, starting_weights


class OutputGP(Whitened):
    """The sparse GP of one output."""

    kernel: Kernel
    log_scale: Float[Leaf, ""]
    points: Float[Leaf, "M H"]

    def inverse_root(self, jitter: Float[Array, ""]) -> tuple[Array, Array]:
        """Return L^-1 and the jitter that was needed."""
        return jittered_inverse_root(self.kernel(self.points, self.points), jitter)

    def mean_and_cross(self, root: Float[Array, "M M"], h: Float[Array, "B H"]) -> tuple[Array, Array]:
        """Return the mean at features h, and A."""
        cross = root @ self.kernel(self.points, h)
        return jnp.exp(self.log_scale) * (cross.T @ self.mean), cross

    def variance(self, cross: Float[Array, "M B"], h: Float[Array, "B H"]) -> Float[Array, " B"]:
        """Return the variance of every row."""
        unexplained = jnp.maximum(self.kernel.diagonal(h) - jnp.sum(cross**2, axis=0), 0)
        return jnp.exp(2 * self.log_scale) * (unexplained + jnp.sum((self.factor.T @ cross) ** 2, axis=0))

    def covariance(self, cross: Float[Array, "M B"], h: Float[Array, "B H"]) -> Float[Array, "B B"]:
        """Return the covariance of the rows."""
        known = self.factor.T @ cross
        return jnp.exp(2 * self.log_scale) * (self.kernel(h, h) - cross.T @ cross + known.T @ known)


class DeepKernel(WeightModel):
    """Point weights up to the features, then one GP per output; the leaves of `gps` have a leading axis of outputs."""

    values: tuple[Float[Leaf, "_ _"], ...]
    gps: OutputGP
    prior_scale: float = eqx.field(static=True, default=1.0)
    start_jitter: float = eqx.field(static=True, default=1e-4)
    joint: bool = eqx.field(static=True, default=False)

    @classmethod
    def initial(
        cls,
        network: Network,
        kernel: Kernel,
        n_inducing: int,
        inputs: np.ndarray,
        rng: np.random.Generator,
        *,
        prior_scale: float = 1.0,
        jitter: float = 1e-4,
    ) -> "DeepKernel":
        """Start with inducing points at features of the data, and lengthscales at their typical distance.

        If features were many lengthscales apart, the GP would fit each row by itself and not interpolate.
        """
        values = starting_weights(network, rng)[:-1]
        features = features_of(network, values, inputs)
        num_outputs = len(network.weight_layers[-1].outputs)
        kernel = kernel.bound_to(features.shape[1])
        if values:
            kernel = kernel.unstandardised(_typical_distance(features, rng))

        def one() -> OutputGP:
            start = Whitened.start(0.1 * rng.standard_normal(n_inducing))
            return OutputGP(*start, kernel, np.zeros(()), _chosen(features, n_inducing, rng))

        gps = jax.tree.map(lambda *leaves: np.stack(leaves), *[one() for _ in range(num_outputs)])
        return cls(values, gps, prior_scale, jitter)

    @property
    def num_outputs(self) -> int:
        """K."""
        return self.gps.log_scale.shape[0]

    def sizes(self) -> NormalCounts:
        """Return one normal per output and row."""
        return NormalCounts(per_row=self.num_outputs)

    def prepared(self) -> "PreparedDeepKernel":
        """Factor every K_uu. Cost K M^3."""
        jitter = jnp.asarray(self.start_jitter, self.gps.mean.dtype)
        roots, used = jax.vmap(lambda gp: gp.inverse_root(jitter))(self.gps)
        return PreparedDeepKernel(self, roots, jnp.max(used))

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL of the inducing values, and -log p of the weights without the constant of their prior."""
        constant = gaussian_log_density([np.zeros(v.shape) for v in self.values], self.prior_scale)
        weights = constant - gaussian_log_density(self.values, self.prior_scale)
        return {"kl_u": jnp.sum(jax.vmap(OutputGP.kl)(self.gps)), "kl_w": weights}

    def for_prediction(self) -> "DeepKernel":
        """Return the model that draws the rows of one call jointly."""
        return switched(self, joint=True)

    @property
    def couples_rows(self) -> bool:
        """True: a joint draw depends on all rows."""
        return True


class PreparedDeepKernel(PreparedWeights):
    """A deep kernel with every K_uu factored."""

    model: DeepKernel
    roots: Float[Array, "K M M"]
    used_jitter: Float[Array, ""]

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a factor needed."""
        return self.used_jitter

    def draw(self, normals: StandardNormals) -> "DeepKernelDraw":
        """Return a draw, which uses only the normals of the rows."""
        return DeepKernelDraw(self)


class DeepKernelDraw(WeightDraw):
    """The layers of a deep kernel."""

    prepared: PreparedDeepKernel

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers with point weights, then h -> draws of the GPs at h."""
        model, roots = self.prepared.model, self.prepared.roots

        def draw(h: Array) -> Array:
            features = h[:, :-1]  # without the bias unit, which a GP does not need

            def one(gp: OutputGP, root: Array, normals: Array) -> Array:
                mean, cross = gp.mean_and_cross(root, features)
                if not model.joint:
                    variance = gp.variance(cross, features)
                    return mean + jnp.sqrt(variance + jnp.finfo(variance.dtype).tiny * 1e6) * normals
                factor, _ = jittered_cholesky(
                    gp.covariance(cross, features), jnp.asarray(model.start_jitter, mean.dtype)
                )
                return mean + factor @ normals

            return jax.vmap(one, in_axes=(0, 0, 1), out_axes=1)(model.gps, roots, rows)

        return [*map(product, model.values), draw]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the weights up to the features; the last layer has none."""
        return [jnp.asarray(v) for v in self.prepared.model.values]


def features_of(network: Network, values: tuple[Leaf, ...], inputs: np.ndarray) -> np.ndarray:
    """Return the features that are the inputs of the GPs."""
    layers: list[Layer] = [*map(product, values), lambda h: h[:, :-1]]
    return np.asarray(network(layers, jnp.asarray(inputs)))


def _typical_distance(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the median distance between the features of two rows, repeated for every feature."""
    some = features[rng.permutation(len(features))[:200]]
    distance = np.sqrt(np.sum((some[:, None] - some[None]) ** 2, axis=-1))
    pairs = distance[np.triu_indices(len(some), 1)]
    median = np.median(pairs) if pairs.size else 1.0
    return np.full(features.shape[1], median if median > 0 else 1.0)


def _chosen(features: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the features of randomly chosen rows with a little noise, so that repeated rows differ."""
    rows = np.resize(rng.permutation(len(features)), count)
    spread = features.std(axis=0) + 1e-3
    return features[rows] + 0.02 * spread * rng.standard_normal((count, features.shape[1]))
