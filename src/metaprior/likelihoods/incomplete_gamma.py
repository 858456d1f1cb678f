"""The incomplete gamma function Q(a, x) for a >= 32, by Temme's expansion: as much work for any a.

JAX's own function adds terms until they are small, for large a millions of them. With eta^2 / 2 = x/a - 1 - log(x/a),

    Q(a, x) = erfc(eta sqrt(a / 2)) / 2 + exp(-a eta^2 / 2) / sqrt(2 pi a) * sum_k c_k(eta) a^-k,

where c_k(eta) = sum_n d_kn eta^n (NIST Handbook of Mathematical Functions, 8.12). The error is below 1e-13.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.numerics import horner

#: The least a that the expansion is for.
FEWEST = 32
#: The number of terms in 1 / a and in eta, and the largest eta that the series in eta is for: exp(-a eta^2 / 2) is
#: below 1e-27 there.
NUM_INVERSE, NUM_POWERS, LARGEST_ETA = 6, 20, 2.0
#: Stirling's series of the gamma function, 1 + 1 / (12 a) + ...
_STIRLING = (1, 1 / 12, 1 / 288, -139 / 51840, -571 / 2488320, 163879 / 209018880)


def _coefficients() -> np.ndarray:
    """Return d_kn, [k, n], by d_kn = (-1)^k g_k d_0n + (n + 2) d_(k-1)(n+2), where g_k is Stirling's series."""
    count = NUM_POWERS + 2 * NUM_INVERSE
    alpha = [0.0, 1.0, 1 / 3]  # x/a - 1 = sum_n alpha_n eta^n
    for n in range(3, count + 3):
        products = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - products) / (n + 1))
    first = np.array([-1 / 3, *[(n + 2) * alpha[n + 2] for n in range(1, count)]])
    rows = [first]
    for k in range(1, NUM_INVERSE):
        moved = np.arange(2, len(rows[-1])) * rows[-1][2:]
        rows.append((-1) ** k * _STIRLING[k] * first[: len(moved)] + moved)
    return np.array([row[:NUM_POWERS] for row in rows])


_TERMS = _coefficients()


def upper_incomplete_gamma(a: Float[Array, "*s"], x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return Q(a, x) for a >= `FEWEST` and x >= 0."""
    half_square = _excess(jnp.maximum(x, jnp.finfo(x.dtype).tiny), a)
    eta = jnp.where(x < a, -1, 1) * jnp.sqrt(2 * half_square)
    near = jnp.clip(eta, -LARGEST_ETA, LARGEST_ETA)
    series = jnp.zeros_like(eta)
    for terms in _TERMS[::-1]:
        series = series / a + horner(terms, near)
    normal = 0.5 * jax.scipy.special.erfc(eta * jnp.sqrt(a / 2))
    return jnp.clip(normal + jnp.exp(-a * half_square) / jnp.sqrt(2 * np.pi * a) * series, 0, 1)


def _excess(x: Float[Array, "*s"], a: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return m - log(1 + m) for m = (x - a) / a, by a series in r = m / (2 + m) where m is small.

    log(1 + m) = 2 (r + r^3 / 3 + ...) and m = 2 r + m r, so the terms of first order cancel exactly.
    """
    m = (x - a) / a
    r = m / (2 + m)
    near = jnp.where(jnp.abs(m) < 0.2, r, 0)
    small = m * near - 2 * near**3 * horner(1 / np.arange(3, 21, 2), near * near)
    return jnp.where(jnp.abs(m) < 0.2, small, m - jnp.log1p(m))
