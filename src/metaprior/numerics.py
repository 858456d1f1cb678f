"""Numerical tools for the rest of the library: above all a fast cosine, and a Cholesky factor with adaptive jitter.

Random Fourier features spend most of their time in cosines, which XLA's CPU backend does not vectorise. A polynomial
does the same work in a fraction of the time. Gram matrices of many low-dimensional latents are numerically singular.
The jitter of their factor is increased in fixed steps until the factorisation succeeds, and is reported.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Float

#: The largest relative jitter; each failed attempt multiplies the last jitter by ten, up to this one.
MAX_JITTER = 1e-1
#: The largest jitter expected of factorisations that do not report it: `full` factors matrices of drawn latents, and
#: predictions factor K_uu again. These matrices are positive semi-definite, so only rounding calls for more than the
#: start: up to 1e-4 for 500 codes in float32 (tests/test_numerics_sweep.py). Training always reports that of K_uu.
LARGEST_SILENT_JITTER = 1e-3
#: Matrices up to this size are inverted block by block.
LARGEST_BLOCKWISE = 128
#: Triangular matrices up to this size are multiplied and inverted at once, larger ones by splitting them in halves.
LARGEST_WHOLE = 256
#: Parts that rows are cut into to sum over them in several threads, the rows from which on that pays, and the columns
#: up to which it does: wider products are spread over threads by XLA itself.
ROW_PARTS, LEAST_CUT, WIDEST_CUT = 4, 1024, 128


def _half_turn_coefficients() -> tuple[np.ndarray, np.ndarray]:
    """Return polynomials in t^2 for sin(pi t)/t and cos(pi t), |t| <= 1/2, by least squares on Chebyshev nodes."""
    t = 0.5 * np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    powers = (t**2)[:, None] ** np.arange(7)
    sine = np.linalg.lstsq(powers, np.pi * np.sinc(t), rcond=None)[0]
    cosine = np.linalg.lstsq(powers, np.cos(np.pi * t), rcond=None)[0]
    return sine, cosine


_SINE, _COSINE = _half_turn_coefficients()
_TURN = (6.28125, 2 * np.pi - 6.28125)


def horner(coefficients: np.ndarray, t: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return the polynomial with these coefficients, the constant first."""
    value = jnp.full_like(t, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * t + np.asarray(c, t.dtype)
    return value


@jax.jit
def _sine_cosine(x: Float[Array, "*s"]) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """Return sin(x) and cos(x) in one pass, from the half angle: cos = 1 - 2 s^2, sin = 2 s c."""
    if x.dtype == jnp.float64:
        return jnp.sin(x), jnp.cos(x)
    turns = jnp.round(x * np.asarray(0.5 / np.pi, x.dtype))
    # A turn is split in two parts. The first has 8 bits, so the product with it and the difference are exact.
    rest = (x - turns * np.asarray(_TURN[0], x.dtype)) - turns * np.asarray(_TURN[1], x.dtype)
    t = rest * np.asarray(0.5 / np.pi, x.dtype)
    # This changes nothing below 1e5. For larger angles `rest` is rounding error, and may leave the polynomials' range.
    t = t - jnp.round(t)
    s, c = t * horner(_SINE, t * t), horner(_COSINE, t * t)
    return 2 * s * c, 1 - 2 * s * s


@jax.custom_jvp
def cosine(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return cos(x): in float32 by a polynomial with an error below 1e-6, in float64 by the exact function."""
    return _sine_cosine(x)[1]


@cosine.defjvp
def _cosine_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    sine_x, cosine_x = _sine_cosine(primals[0])
    return cosine_x, -sine_x * tangents[0]


# A batched LAPACK call waits for the thread pool that it runs in, and two such calls at once hang a machine with two
# cores. Processing one matrix after the other is no slower for matrices of this size.
@sequential_vmap
def _cholesky(matrix: Float[Array, "M M"]) -> Float[Array, "M M"]:
    # LAPACK expects column-major order, which the transpose of a symmetric matrix has without a copy. Only one triangle
    # is read. If the matrix is not positive definite, the whole result is NaN.
    return lax.linalg.cholesky(matrix.T, symmetrize_input=False)


def _attempt(matrix: Float[Array, "M M"], jitter: Float[Array, ""]) -> Float[Array, "M M"]:
    # A matrix of zeros (a linear kernel at constant inputs) has no scale of its own.
    least = float(jnp.finfo(matrix.dtype).tiny / jnp.finfo(matrix.dtype).eps ** 2)
    scale = jnp.maximum(jnp.mean(jnp.diagonal(matrix)), least)
    return _cholesky(matrix + jitter * scale * jnp.eye(matrix.shape[-1], dtype=matrix.dtype))


@jax.custom_jvp
def jittered_cholesky(
    matrix: Float[Array, "M M"], jitter: Float[Array, ""]
) -> tuple[Float[Array, "M M"], Float[Array, ""]]:
    """Return the lower factor of `matrix + jitter * mean(diagonal) * I` and the relative jitter that was used.

    An attempt that yields a non-finite factor is repeated with ten times the jitter, up to `MAX_JITTER`.
    Cost: M^3 / 3 per attempt; the derivative needs the inverse of the factor.
    """

    def failed(state: tuple[Any, ...]) -> Array:
        factor, used = state
        return ~jnp.isfinite(factor[-1, -1]) & (used < MAX_JITTER)

    def retry(state: tuple[Any, ...]) -> tuple[Any, ...]:
        first = float(jnp.finfo(matrix.dtype).eps)  # ten times a jitter of 0 would stay 0
        used = jnp.clip(state[1] * 10, first, MAX_JITTER)
        return _attempt(matrix, used), used

    start = jnp.asarray(jitter, matrix.dtype)
    return lax.while_loop(failed, retry, (_attempt(matrix, start), start))


@jittered_cholesky.defjvp
def _jittered_cholesky_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    factor, used = jittered_cholesky(*primals)
    half = _half(inverse_of_lower(factor), tangents[0], used)  # dL = L Phi
    return (factor, used), (factor @ half, jnp.zeros_like(used))


@jax.custom_jvp
def jittered_inverse_root(
    matrix: Float[Array, "M M"], jitter: Float[Array, ""]
) -> tuple[Float[Array, "M M"], Float[Array, ""]]:
    """Return L^-1, the inverse of the factor of `jittered_cholesky`, and the jitter that was used.

    Many draws of few columns are solved with the same small factor. Products with its inverse compile to less code, and
    their derivatives are products too.
    """
    factor, used = jittered_cholesky(matrix, jitter)
    return inverse_of_lower(factor), used


@jittered_inverse_root.defjvp
def _jittered_inverse_root_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    inverse, used = jittered_inverse_root(*primals)
    half = _half(inverse, tangents[0], used)  # d(L^-1) = -L^-1 dL L^-1 = -Phi L^-1
    return (inverse, used), (-half @ inverse, jnp.zeros_like(used))


def _half(inverse: Float[Array, "M M"], dmatrix: Float[Array, "M M"], used: Array) -> Float[Array, "M M"]:
    """Return Phi(L^-1 dK L^-T): d(LL') = dK gives dL = L Phi; Phi keeps the lower triangle, half the diagonal."""
    size = inverse.shape[-1]
    dmatrix = dmatrix + used * jnp.trace(dmatrix) / size * jnp.eye(size, dtype=inverse.dtype)
    keep = np.tril(np.ones((size, size)), -1) + 0.5 * np.eye(size)
    return (inverse @ dmatrix @ inverse.T) * keep.astype(inverse.dtype)


def inverse_of_lower(factor: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Return L^-1 for a lower factor.

    A large factor is split in halves, which takes two thirds of the operations of a triangular solve. A small one is
    inverted by blocks: two neighbouring inverted diagonal blocks of size b give one of size 2 b,
    inv [[A, 0], [C, D]] = [[A^-1, 0], [-D^-1 C A^-1, D^-1]], for all pairs at once in two matrix products. This costs
    4 M^3 log2 M but avoids a call of BLAS, which waits milliseconds for its threads if the cores are busy. In float64
    products of small matrices take ten times as long, so the call is faster nevertheless.
    """
    size = factor.shape[-1]
    if size > LARGEST_WHOLE:
        half = size // 2
        first, last = inverse_of_lower(factor[:half, :half]), inverse_of_lower(factor[half:, half:])
        below = -last @ (factor[half:, :half] @ first)
        return jnp.block([[first, jnp.zeros((half, size - half), factor.dtype)], [below, last]])
    if size > LARGEST_BLOCKWISE or factor.dtype == jnp.float64:
        return _solved_for_inverse(factor)
    inverse = jnp.diag(1 / jnp.diagonal(factor))
    for mask in _pair_masks(size):
        inverse = inverse - inverse @ (factor * mask.astype(factor.dtype)) @ inverse
    return inverse


def _pair_masks(size: int) -> list[np.ndarray]:
    """Return, for blocks of size 1, 2, 4, ..., masks of the blocks below the diagonal of each pair."""
    masks, width, place = [], 1, np.arange(size)
    while width < size:
        block = place // width
        masks.append((block[:, None] % 2 == 1) & (block[:, None] == block[None, :] + 1))
        width *= 2
    return masks


@sequential_vmap
def _solved_for_inverse(factor: Float[Array, "M M"]) -> Float[Array, "M M"]:
    eye = jnp.eye(factor.shape[-1], dtype=factor.dtype)
    return lax.linalg.triangular_solve(factor, eye, left_side=True, lower=True)


@sequential_vmap
def solve_lower(factor: Float[Array, "M M"], columns: Float[Array, "M C"]) -> Float[Array, "M C"]:
    """Return L^-1 columns; under vmap one matrix after the other, as in all LAPACK calls here."""
    return lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)


def uniform_from_normal(normal: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return standard normals as uniforms on (0, 1), so that normals are the only random numbers needed."""
    return jax.scipy.stats.norm.cdf(normal)


@jax.custom_vjp
def grid_cross_entropy(
    gram_in: Float[Array, "I I"],
    gram_out: Float[Array, "J J"],
    noise: Float[Array, ""],
    mean: Float[Array, "I J"],
    variance: Float[Array, "I J"],
) -> Float[Array, ""]:
    """Return (m' A m + tr(A diag(v)) - log |A|) / 2 for A = (gram_in (x) gram_out + noise I)^-1 on a grid.

    It uses the eigenvectors of both sides, at cost I^3 + J^3 + I J (I + J) instead of (I J)^3 for the whole matrix. The
    derivatives are in closed form, because the derivative of an eigenvector can be very large.
    """
    return _grid_forward(gram_in, gram_out, noise, mean, variance)[0]


def _grid_forward(gram_in: Array, gram_out: Array, noise: Array, mean: Array, variance: Array) -> tuple[Any, ...]:
    values_in, roots_in = _eigenvectors(gram_in)
    values_out, roots_out = _eigenvectors(gram_out)
    # Rounding may make a small eigenvalue negative.
    values_in, values_out = jnp.maximum(values_in, 0), jnp.maximum(values_out, 0)
    inverse = 1 / (values_in[:, None] * values_out + noise)
    solved = roots_in @ (inverse * (roots_in.T @ mean @ roots_out)) @ roots_out.T
    diagonal = roots_in**2 @ inverse @ (roots_out**2).T
    value = 0.5 * (jnp.sum(mean * solved) + jnp.sum(variance * diagonal) - jnp.sum(jnp.log(inverse)))
    return value, (gram_in, gram_out, variance, values_in, roots_in, values_out, roots_out, inverse, solved, diagonal)


def _grid_backward(kept: tuple[Any, ...], slope: Array) -> tuple[Any, ...]:
    gram_in, gram_out, variance, values_in, roots_in, values_out, roots_out, inverse, solved, diagonal = kept
    squared = jnp.sum(variance * (roots_in**2 @ inverse**2 @ (roots_out**2).T))
    by_noise = 0.5 * (jnp.sum(inverse) - jnp.sum(solved**2) - squared)

    def by_gram(
        inverse: Array, values: Array, roots: Array, others: Array, other_gram: Array, x: Array, v: Array
    ) -> Array:
        weighed = inverse * values  # D_ab mu_b
        middle = jnp.einsum("ab,ia,ic,ib,cb->ac", weighed, roots, roots, v @ others**2, inverse, optimize="optimal")
        inner = jnp.diag(jnp.sum(weighed, axis=1)) - middle
        return 0.5 * (roots @ inner @ roots.T - x @ other_gram @ x.T)

    by_in = by_gram(inverse, values_out, roots_in, roots_out, gram_out, solved, variance)
    by_out = by_gram(inverse.T, values_in, roots_out, roots_in, gram_in, solved.T, variance.T)
    parts = (by_in, by_out, by_noise, solved, 0.5 * diagonal)
    return tuple(slope * part for part in parts)


@sequential_vmap
def _eigenvectors(matrix: Float[Array, "M M"]) -> tuple[Float[Array, " M"], Float[Array, "M M"]]:
    return jnp.linalg.eigh(matrix)


grid_cross_entropy.defvjp(_grid_forward, _grid_backward)


@jax.custom_jvp
def eigenvectors(matrix: Float[Array, "M M"]) -> tuple[Float[Array, " M"], Float[Array, "M M"]]:
    """Return eigenvalues (none below 0) and eigenvectors of a covariance, for use in functions of that covariance.

    The derivative of an eigenvector divides by gaps between eigenvalues. A function of the matrix itself does not
    depend on the choice of basis in an eigenspace, so the numerator is about as small as the gap, up to rounding. Gaps
    below eps^(2/3) of the mean eigenvalue (2e-5 in float32) are damped, so that rounding errors are not amplified. The
    derivative then lacks the contribution of pairs of such close directions.
    """
    values, vectors = _eigenvectors(matrix)
    return jnp.maximum(values, 0), vectors


@eigenvectors.defjvp
def _eigenvectors_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    values, vectors = eigenvectors(*primals)
    turned = vectors.T @ tangents[0] @ vectors
    gaps = values - values[:, None]
    kind = jnp.finfo(values.dtype)
    floor = jnp.maximum((float(kind.eps) ** (2 / 3) * jnp.mean(values)) ** 2, float(kind.tiny))
    turn = turned * gaps / (gaps**2 + floor)
    return (values, vectors), (jnp.diagonal(turned), vectors @ turn)


@jax.custom_vjp
def gaussian_log_density_of(covariance: Float[Array, "N N"], residual: Float[Array, " N"]) -> Float[Array, ""]:
    """Return log N(residual; 0, covariance). Cost N^3 / 3, and N^3 for the gradient (C^-1 r r' C^-1 - C^-1) / 2."""
    return _density_forward(covariance, residual)[0]


def _density_forward(covariance: Array, residual: Array) -> tuple[Any, ...]:
    factor, _ = jittered_cholesky(covariance, jnp.zeros((), covariance.dtype))
    white = solve_lower(factor, residual[:, None])[:, 0]
    logs = jnp.sum(jnp.log(jnp.diagonal(factor)))
    return -0.5 * jnp.sum(white**2) - logs - 0.5 * len(residual) * np.log(2 * np.pi), (factor, white)


def _density_backward(kept: tuple[Any, ...], slope: Array) -> tuple[Any, ...]:
    factor, white = kept
    inverse_root = inverse_of_lower(factor)
    solved = inverse_root.T @ white
    by_covariance = 0.5 * (jnp.outer(solved, solved) - _gram_of_lower(inverse_root))
    return lax.optimization_barrier(slope * by_covariance), -slope * solved


def _gram_of_lower(lower: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Return A' A for a lower triangular A, by halves, with a third of the operations of a full matrix product."""
    size = lower.shape[0]
    if size <= LARGEST_WHOLE:
        return lower.T @ lower
    half = size // 2
    left, corner, right = lower[:half, :half], lower[half:, :half], lower[half:, half:]
    across = corner.T @ right
    top = _gram_of_lower(left) + corner.T @ corner
    return jnp.block([[top, across], [across.T, _gram_of_lower(right)]])


gaussian_log_density_of.defvjp(_density_forward, _density_backward)


@jax.custom_vjp
def products_of_columns(columns: Float[Array, "N C"]) -> Float[Array, "C C"]:
    """Return A' A, the products of all pairs of columns. Cost N C^2, and as much for the derivative.

    XLA sums along the rows in one thread, so a few long columns are cut into `ROW_PARTS`, computed at the same time.
    The derivative A (G + G') is one product of matrices; that of a product of two different matrices would be two.
    """
    num_rows, num_columns = columns.shape
    if num_rows < LEAST_CUT or num_columns > WIDEST_CUT or num_rows % ROW_PARTS:
        return columns.T @ columns
    cut = columns.reshape(ROW_PARTS, -1, num_columns)
    return jnp.sum(jnp.einsum("pni,pnj->pij", cut, cut), axis=0)


def _products_forward(columns: Array) -> tuple[Array, Array]:
    return products_of_columns(columns), columns


def _products_backward(columns: Array, slope: Array) -> tuple[Array]:
    return (columns @ (slope + slope.T),)


products_of_columns.defvjp(_products_forward, _products_backward)


def small_cholesky(matrices: Float[Array, "B K K"]) -> Float[Array, "B K K"]:
    """Return the lower factors of many small matrices, computed column by column for all at once. Cost B K^3.

    A pivot is at least the rounding error at the scale of the matrix, so a singular matrix has a finite factor.
    """
    size = matrices.shape[-1]
    eps = jnp.finfo(matrices.dtype).eps
    least = eps * jnp.maximum(jnp.trace(matrices, axis1=1, axis2=2), jnp.finfo(matrices.dtype).tiny / eps**2)
    columns: list[Array] = []
    for k in range(size):
        rest = matrices[:, :, k]
        for column in columns:
            rest = rest - column * column[:, k : k + 1]
        pivot = jnp.sqrt(jnp.maximum(rest[:, k], least))
        below = np.arange(size) > k
        columns.append(jnp.where(below, rest / pivot[:, None], 0) + pivot[:, None] * (np.arange(size) == k))
    return jnp.stack(columns, axis=-1)
