"""Ten thousand random kernels, code sets and hyper-parameters through every conditional: nothing breaks.

A case is a MetaGP with nothing at a usual value: kernels composed at random, lengthscales and periods from 1e-6 to 1e6,
codes that coincide with each other and with unit latents, 1 to 500 inducing codes. Every case goes through all four
conditionals, forwards and backwards, in float32 or float64. Cases of one shape are one compiled program.
"""

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior import kernels
from metaprior.compilation import compilation_cache, compiled
from metaprior.estimators.metagp_prior import JITTER
from metaprior.kernels import Kernel
from metaprior.networks import Dense
from metaprior.numerics import LARGEST_SILENT_JITTER, jittered_cholesky
from metaprior.random import draw_normals, make_key
from metaprior.weight_gp import FITC, Conditional, Diag, Full, Pathwise, SparseGP
from metaprior.weight_gp.base import stacked
from metaprior.weight_gp.full import FullDraw
from metaprior.weight_gp.independent import IndependentDraw, cheaper_order
from metaprior.weights import MetaGP, MetaGPSpec, initial_metagp
from metaprior.weights.base import switched

CONDITIONALS: dict[str, Conditional] = {
    "diag": Diag(),
    "fitc": FITC(),
    "full": Full(),
    "pathwise": Pathwise(num_features=16, num_noise_features=4),
}
NUM_ROWS = 4


class Bucket(NamedTuple):
    """Cases of one shape: the seed that composes their kernels, the number of inducing codes, how many there are."""

    composition: int
    n_inducing: int
    dtype: str
    local: bool
    num_cases: int
    latent_dim: int = 2
    sizes: tuple[int, ...] = (2, 3, 2)

    @property
    def network(self) -> Dense:
        return Dense(self.sizes)

    def __str__(self) -> str:
        kind = "local" if self.local else "global"
        return f"{self.composition}-{kind}-{self.n_inducing}-{self.dtype}"


#: One bucket in the daily run, in the narrower type.
DAILY = Bucket(30, 7, "float32", True, 400, sizes=(2, 2))
#: Ten thousand cases. A program takes seconds to compile and a small case a millisecond: the largest are few.
MANY = [
    Bucket(1, 1, "float32", True, 900),
    Bucket(2, 1, "float64", False, 900),
    Bucket(3, 2, "float32", False, 900),
    Bucket(4, 7, "float32", True, 1400),
    Bucket(5, 7, "float64", True, 1400),
    Bucket(6, 7, "float32", False, 1000),
    Bucket(7, 40, "float32", True, 1000),
    Bucket(8, 40, "float64", False, 1000),
    Bucket(9, 20, "float32", True, 1000, latent_dim=10),
    Bucket(10, 130, "float64", False, 400),
    Bucket(11, 130, "float32", True, 50),
    Bucket(12, 500, "float32", False, 40),
    Bucket(13, 500, "float64", True, 10),
]


# --- cases ------------------------------------------------------------------------------------------------------------

#: Every kernel with hyper-parameters, for a number of dimensions.
BASES: list[Callable[[int], Kernel]] = [
    lambda dims: kernels.RBF().bound_to(dims),
    lambda dims: kernels.Matern12().bound_to(dims),
    lambda dims: kernels.Matern32().bound_to(dims),
    lambda dims: kernels.Matern52().bound_to(dims),
    lambda dims: kernels.RationalQuadratic().bound_to(dims),
    lambda dims: kernels.Periodic(1.0).bound_to(dims),
    lambda dims: kernels.Linear().bound_to(dims),
    lambda dims: kernels.Constant(),
]
#: Hyper-parameters that are tiny, huge or usual, where codes have a spread of 1; the others are levels.
WILD = ("log_lengthscale", "log_period")


def composed(rng: np.random.Generator, dims: int) -> Kernel:
    """One or two kernels, composed at random."""

    def base() -> Kernel:
        made = BASES[rng.integers(len(BASES))]
        return made(1).on(int(rng.integers(dims))) if rng.uniform() < 0.2 else made(dims)

    kind = rng.integers(4)
    if kind == 0:
        return base()
    if kind == 1:
        return 1.0 * base()
    return base() + base() if kind == 2 else base() * base()


def start_of(bucket: Bucket) -> MetaGP:
    """One model with the bucket's kernels and shapes."""
    rng, dims = np.random.default_rng(bucket.composition), bucket.latent_dim
    pair = composed(rng, dims), composed(rng, dims)
    aux = composed(rng, 2) if bucket.local else None
    spec = MetaGPSpec(dims, bucket.n_inducing, *pair, aux, jitter=JITTER[bucket.dtype])
    return initial_metagp(spec, bucket.network.weight_layers, rng.standard_normal((5, 2)), rng)


def random_hypers(kernel: Kernel | None, num_cases: int, rng: np.random.Generator) -> Kernel | None:
    """The kernel of every case: lengths from 1e-6 to 1e6, levels from 0.03 to 30."""

    def drawn(path: tuple, leaf: np.ndarray) -> np.ndarray:
        decades = rng.choice([1.0, 6.0], (num_cases, *[1] * leaf.ndim)) if path[-1].name in WILD else 1.5
        return np.log(10) * decades * rng.uniform(-1, 1, (num_cases, *leaf.shape))

    return jax.tree_util.tree_map_with_path(drawn, kernel)


def of_many(module: eqx.Module, **parts: object) -> eqx.Module:
    """The module with some parts of many cases, along a leading axis (which its constructor would refuse)."""
    return eqx.tree_at(
        lambda m: [getattr(m, name) for name in parts], module, list(parts.values()), is_leaf=lambda part: part is None
    )


def repeated(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows [cases, n, ...] of which, in every other case, many are copies of others."""
    cases, size = rows.shape[:2]
    copies = rng.integers(0, max(1, size // 2), (cases, size))
    return rows[np.arange(cases)[:, None], np.where(rng.uniform(size=(cases, 1)) < 0.5, copies, np.arange(size))]


def random_codes(z: np.ndarray, n_inducing: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Both blocks of inducing codes: some are units' own latents, some stand there twice, in one block or in both."""
    shape, cases = (len(z), n_inducing), np.arange(len(z))[:, None]
    own = rng.uniform(size=(*shape, 1)) < 0.3
    blocks = [
        np.where(own, z[cases, rng.integers(0, z.shape[1], shape)], rng.standard_normal((*shape, z.shape[2])))
        for _ in range(2)
    ]
    together = repeated(np.stack(blocks, axis=2), rng)
    return [repeated(together[:, :, side], rng) for side in range(2)]


def random_sparse_gp(sparse_gp: SparseGP, z: np.ndarray, aux: np.ndarray, rng: np.random.Generator) -> SparseGP:
    """The GP of every case, its q(v) and its codes at random."""
    n, m = len(z), sparse_gp.n_inducing
    code_in, code_out = random_codes(z, m, rng)
    return of_many(
        sparse_gp,
        mean=rng.standard_normal((n, m)),
        log_diagonal=rng.uniform(np.log(1e-6), np.log(2), (n, m)),
        below_diagonal=rng.standard_normal((n, m, m)) / np.sqrt(m),
        kernel_in=random_hypers(sparse_gp.kernel_in, n, rng),
        kernel_out=random_hypers(sparse_gp.kernel_out, n, rng),
        code_in=code_in,
        code_out=code_out,
        code_aux=None if sparse_gp.code_aux is None else aux,
    )


@functools.lru_cache(maxsize=1)
def stacked_cases(bucket: Bucket) -> tuple[MetaGP, np.ndarray]:
    """All models of a bucket as one, and their rows, of which some are copies of others or of an inducing code."""
    rng, n = np.random.default_rng([bucket.composition, 1]), bucket.num_cases
    start = start_of(bucket)
    z = repeated(rng.standard_normal((n, *start.latents.mean.shape)), rng)
    x, aux = (repeated(rng.standard_normal((n, size, 2)), rng) for size in (NUM_ROWS, bucket.n_inducing))
    x[:, 0] = aux[:, 0]
    models = of_many(
        start,
        latents=of_many(start.latents, mean=z, log_std=rng.uniform(np.log(1e-6), np.log(0.5), z.shape)),
        sparse_gps=(random_sparse_gp(start.sparse_gps[0], z, aux, rng),),
        input_kernel=random_hypers(start.input_kernel, n, rng),
        log_scale=rng.standard_normal((n, *start.log_scale.shape)),
        weight_noise=of_many(start.weight_noise, log_std=rng.uniform(np.log(1e-4), 0, n)),
    )
    return jax.tree.map(lambda leaf: leaf.astype(bucket.dtype), (models, x))


# --- what is looked at ------------------------------------------------------------------------------------------------


def _all_finite(tree: object) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def _jitter_of(root: jax.Array, gram: jax.Array) -> jax.Array:
    """The relative jitter that a factor has, read off the factor."""
    return jnp.mean(jnp.diagonal(root @ root.T - gram)) / jnp.mean(jnp.diagonal(gram))


def _silent_jitter(draw: FullDraw, z_in: jax.Array, z_out: jax.Array, eps: jax.Array) -> jax.Array:
    """The largest jitter of a draw's factors: two that it holds, and one that it makes where it is asked."""
    sparse_gp, kernel = draw.prior.sparse_gp, draw.prior.input_kernel
    points = stacked([z_in], sparse_gp.code_in), stacked([z_out], sparse_gp.code_out)
    found = [
        _jitter_of(root, k(p, p))
        for root, k, p in zip(
            (draw.side_in.root, draw.side_out.root), (sparse_gp.kernel_in, sparse_gp.kernel_out), points, strict=True
        )
    ]
    if kernel is not None:
        rows = stacked([jnp.asarray(sparse_gp.input_codes)], eps)
        found.append(jittered_cholesky(kernel(rows, rows), draw.jitter)[1])
    return jnp.max(jnp.stack(found))


def _least_variance(draw: IndependentDraw, eps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The least variance of a pre-activation or weight; the least before it is cut off at 0, in parts of its terms."""
    found = []
    for layer in range(len(draw.weight_layers)):
        z_in, z_out, e_in, e_out = draw._blocks(layer)
        sparse_gp, kernel = draw.prior.sparse_gp, draw.prior.input_kernel
        h2 = jnp.ones((NUM_ROWS, z_in.shape[0]), eps.dtype)
        a, level = (None, 1.0) if kernel is None else (draw.prior.cross_aux(eps), kernel.diagonal(eps)[:, None])
        total = level * jnp.outer(h2 @ sparse_gp.kernel_in.diagonal(z_in), sparse_gp.kernel_out.diagonal(z_out))
        explained = cheaper_order(NUM_ROWS, e_in, e_out, local=a is not None)
        known = (h2, e_in, e_out, a, draw.precision)
        terms = total + explained(*[None if part is None else jnp.abs(part) for part in known])
        left = (total - explained(*known)) / terms
        of_rows, of_weights = draw.moments(layer, h2, eps)[1], draw.weight_moments(layer, eps)[1]
        found.append(jnp.stack([jnp.minimum(jnp.min(of_rows), jnp.min(of_weights)), jnp.min(left)]))
    least = jnp.min(jnp.stack(found), axis=0)
    return least[0], least[1]


def examined(network: Dense, model: MetaGP, x: jax.Array, key: jax.Array) -> dict[str, jax.Array]:
    """Return what one case shows through its conditional."""
    noise = jax.tree.map(lambda part: part[0], draw_normals(key, model.sizes(), NUM_ROWS, 1, dtype=x.dtype))

    def total(model: MetaGP) -> tuple[jax.Array, tuple]:
        prepared = model.prepared()
        draw = prepared.draw(noise)
        outputs = draw.outputs(network, x, noise.rows)
        return jnp.sum(outputs), (prepared.jitter, draw, outputs)

    (_, (jitter, draw, outputs)), slope = eqx.filter_value_and_grad(total, has_aux=True)(model)
    found = {
        "draw": _all_finite([outputs, *draw.weights(x, noise.rows)]),
        "gradient": _all_finite(slope),
        "reported": jitter,
    }
    drawn = draw.draws[0]
    if isinstance(drawn, IndependentDraw):
        found["variance"], found["unclipped"] = _least_variance(drawn, x)
    if isinstance(drawn, FullDraw):
        z = model.latents.draw(noise.latents)
        ends = [[jnp.asarray(z)[np.array(side)] for side in (w.inputs, w.outputs)] for w in model.weight_layers]
        found["silent"] = _silent_jitter(drawn, *[jnp.concatenate([e[i] for e in ends]) for i in (0, 1)], x)
    return found


@compiled
def _examined_all(network: Dense, models: MetaGP, x: jax.Array, keys: jax.Array) -> dict[str, jax.Array]:
    return jax.lax.map(lambda case: examined(network, *case), (models, x, keys))


def sweep(bucket: Bucket, conditional: str) -> dict[str, np.ndarray]:
    models, x = stacked_cases(bucket)
    models = switched(models, conditional=CONDITIONALS[conditional])
    with compilation_cache(), jax.enable_x64(bucket.dtype == "float64"):
        keys = jax.random.split(make_key(bucket.composition), bucket.num_cases)
        found = _examined_all(bucket.network, models, jnp.asarray(x), keys)
        return {name: np.asarray(values) for name, values in found.items()}


# --- claims -----------------------------------------------------------------------------------------------------------


def failing(good: np.ndarray) -> list[int]:
    """The numbers of the cases that fail, to be found again by `stacked_cases`."""
    return np.flatnonzero(~good).tolist()


def hold(bucket: Bucket, conditional: str) -> None:
    found, eps, m = sweep(bucket, conditional), np.finfo(bucket.dtype).eps, bucket.n_inducing
    assert failing(found["draw"]) == []
    assert failing(found["gradient"]) == []
    start = JITTER[bucket.dtype]
    assert failing((found["reported"] >= np.float32(start)) & (found["reported"] <= LARGEST_SILENT_JITTER)) == []
    if "silent" in found:
        # read off the factor, whose own rounding is of the order of its size times eps
        size = m + bucket.network.num_units
        assert failing(found["silent"] <= LARGEST_SILENT_JITTER + 2 * size * eps) == []
    if "variance" in found:
        assert failing(found["variance"] >= 0) == []
        # rounding alone: K_uu^-1 is known to M eps cond(L), and cond(L)^2 is at most M / jitter
        assert failing(found["unclipped"] >= -m * eps * np.sqrt(m / start)) == []


@pytest.mark.parametrize("conditional", ["fitc", "full", "pathwise"])  # `diag` shares the computation of `fitc`
def test_random_cases_stay_finite_with_variances_that_are_not_negative_and_little_jitter(conditional):
    hold(DAILY, conditional)


#: The grid of `full` in a local model holds M^3 numbers: a gigabyte for 500 inducing codes.
PAIRS = [(b, c) for b in MANY for c in CONDITIONALS if not (c == "full" and b.local and b.n_inducing > 130)]


@pytest.mark.slow
@pytest.mark.parametrize(("bucket", "conditional"), PAIRS, ids=[f"{b}-{c}" for b, c in PAIRS])
def test_ten_thousand_random_cases_stay_finite_with_variances_that_are_not_negative_and_little_jitter(
    bucket, conditional
):
    hold(bucket, conditional)


def test_the_sweep_has_ten_thousand_cases_all_kernels_both_types_and_1_to_500_inducing_codes():
    assert sum(bucket.num_cases for bucket in MANY) >= 10_000
    assert {bucket.dtype for bucket in MANY} == {"float32", "float64"}
    assert {1, 500} <= {bucket.n_inducing for bucket in MANY}
    kinds: set[str] = set()
    for bucket in MANY:
        model = start_of(bucket)
        sparse_gp = model.sparse_gps[0]
        todo = [k for k in (sparse_gp.kernel_in, sparse_gp.kernel_out, model.input_kernel) if k is not None]
        while todo:
            kernel = todo.pop()
            kinds.add(type(kernel).__name__)
            todo += kernel.children().values()
    public = [getattr(kernels, name) for name in kernels.__all__]
    known = {kind.__name__ for kind in public if inspect.isclass(kind) and issubclass(kind, Kernel)}
    abstract = {kind.__name__ for kind in public if inspect.isabstract(kind)}
    assert kinds == known - abstract - {"Custom"}  # a custom kernel is the user's own function


# --- the single causes, each where it was -----------------------------------------------------------------------------

TINY, HUGE = 1e-6, 1e6


@eqx.filter_jit
def _gram_and_slope(kernel: Kernel, points: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The matrix as a program that also differentiates has it: there sums are fused, and computed more than once."""

    def total(points: jax.Array) -> tuple[jax.Array, jax.Array]:
        gram = kernel(points, points)
        return jnp.sum(jnp.sin(gram)), gram

    slope, gram = jax.grad(total, has_aux=True)(points)
    return gram, slope


#: The daily run has two that failed before differences were taken first.
DAILY_DISTANCES = [(kernels.Matern32, 2, "float64"), (kernels.Matern12, 40, "float32")]
DISTANCES = [
    pytest.param(*case, marks=[] if case in DAILY_DISTANCES else pytest.mark.slow)
    for case in itertools.product(
        (kernels.RBF, kernels.Matern12, kernels.Matern32, kernels.Matern52), (2, 10, 40), ("float32", "float64")
    )
]


@pytest.mark.parametrize(("make", "dims", "dtype"), DISTANCES)
def test_a_point_has_unit_covariance_with_itself_and_with_its_copy_in_a_program_that_differentiates(make, dims, dtype):
    points = np.random.default_rng(0).standard_normal((6, dims)).astype(dtype)
    points[4:] = points[:2]
    eps = np.finfo(dtype).eps
    for lengthscale in (TINY, 0.26, HUGE):
        with jax.enable_x64(dtype == "float64"):
            ard = np.geomspace(lengthscale, 5 * lengthscale, dims)
            kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), make(ard))
            gram, slope = map(np.asarray, _gram_and_slope(kernel, jnp.asarray(points)))
        # the exponential of a distance that rounds to eps, in a product of some factors
        np.testing.assert_allclose(np.diag(gram), 1, rtol=8 * eps)
        np.testing.assert_allclose([gram[0, 4], gram[1, 5]], 1, rtol=8 * eps)
        assert np.isfinite(slope).all()
