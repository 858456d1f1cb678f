// Dense matrices, row after row in one Float64Array, and the few operations that a Gaussian process needs.
"use strict";
(function (explorer) {
  const matrix = (rows, cols, data = new Float64Array(rows * cols)) => ({ rows, cols, data });

  function column(values) {
    return matrix(values.length, 1, Float64Array.from(values));
  }

  /** Return a b'. */
  function timesTransposed(a, b) {
    const out = matrix(a.rows, b.rows);
    for (let i = 0; i < a.rows; i++) {
      for (let j = 0; j < b.rows; j++) {
        let sum = 0;
        for (let k = 0, p = i * a.cols, q = j * b.cols; k < a.cols; k++) sum += a.data[p + k] * b.data[q + k];
        out.data[i * b.rows + j] = sum;
      }
    }
    return out;
  }

  /** Return a b. */
  function multiply(a, b) {
    const out = matrix(a.rows, b.cols);
    for (let i = 0; i < a.rows; i++) {
      for (let k = 0; k < a.cols; k++) {
        const factor = a.data[i * a.cols + k];
        if (factor === 0) continue;
        for (let j = 0, p = i * b.cols, q = k * b.cols; j < b.cols; j++) out.data[p + j] += factor * b.data[q + j];
      }
    }
    return out;
  }

  /** Return the lower factor of a + shift I, or null if that is not positive definite. */
  function factorOf(a, shift) {
    const n = a.rows;
    const lower = matrix(n, n);
    const l = lower.data;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = a.data[i * n + j] + (i === j ? shift : 0);
        for (let k = 0, p = i * n, q = j * n; k < j; k++) sum -= l[p + k] * l[q + k];
        if (i === j) {
          if (!(sum > 0)) return null;
          l[i * n + i] = Math.sqrt(sum);
        } else {
          l[i * n + j] = sum / l[j * n + j];
        }
      }
    }
    return lower;
  }

  /** Return the lower factor of a + jitter mean(diagonal) I; a jitter that is too small is multiplied by ten. */
  function cholesky(a, jitter = 0) {
    let trace = 0;
    for (let i = 0; i < a.rows; i++) trace += a.data[i * (a.cols + 1)];
    let used = jitter;
    for (;;) {
      const lower = factorOf(a, (used * trace) / a.rows);
      if (lower) return lower;
      if (used >= 0.1) throw new Error("cholesky: expected a covariance matrix; this one is far from positive.");
      used = Math.min(Math.max(10 * used, Number.EPSILON), 0.1);
    }
  }

  /** Return L^-1 b for a matrix b. */
  function solveLower(lower, b) {
    const n = lower.rows;
    const out = matrix(n, b.cols, Float64Array.from(b.data));
    for (let i = 0; i < n; i++) {
      const p = i * b.cols;
      for (let k = 0; k < i; k++) {
        const factor = lower.data[i * n + k];
        for (let j = 0, q = k * b.cols; j < b.cols; j++) out.data[p + j] -= factor * out.data[q + j];
      }
      for (let j = 0; j < b.cols; j++) out.data[p + j] /= lower.data[i * n + i];
    }
    return out;
  }

  /** Return (L L')^-1 b for a vector b. */
  function solve(lower, b) {
    const n = lower.rows;
    const out = solveLower(lower, column(b)).data;
    for (let i = n - 1; i >= 0; i--) {
      for (let k = i + 1; k < n; k++) out[i] -= lower.data[k * n + i] * out[k];
      out[i] /= lower.data[i * n + i];
    }
    return out;
  }

  explorer.linalg = { matrix, column, multiply, timesTransposed, cholesky, solveLower, solve };
})((globalThis.explorer ??= {}));
