// Kernels of one input as plain objects, such as {kind: "sum", left: {kind: "linear", variance: 1}, right: ...}:
// covariances and random features, with the normals in the same order as in metaprior.kernels.
"use strict";
(function (explorer) {
  const { matrix } = explorer.linalg;
  const smallest = Number.EPSILON ** 2;

  /** Functions of the squared scaled distance, and the degrees of freedom of the spectral mixture. */
  const stationary = {
    rbf: { of: (r2) => Math.exp(-0.5 * r2), degrees: 0 },
    matern12: { of: (r2) => Math.exp(-Math.sqrt(Math.max(r2, smallest))), degrees: 1 },
    matern32: { of: (r2) => matern(3 * r2, (r) => 1 + r), degrees: 3 },
    matern52: { of: (r2) => matern(5 * r2, (r) => 1 + r + (r * r) / 3), degrees: 5 },
  };

  function matern(r2, polynomial) {
    const r = Math.sqrt(Math.max(r2, smallest));
    return polynomial(r) * Math.exp(-r);
  }

  const phase = (kernel, x) => (2 * Math.PI * x) / kernel.period;

  /** Return k(a, b). `other` is the kernel whose period turns b into a phase: usually the same one. */
  function at(kernel, a, b, other = kernel) {
    switch (kernel.kind) {
      case "sum":
        return at(kernel.left, a, b, other.left) + at(kernel.right, a, b, other.right);
      case "product":
        return at(kernel.left, a, b, other.left) * at(kernel.right, a, b, other.right);
      case "scaled":
        return kernel.scale * at(kernel.inner, a, b, other.inner);
      case "linear":
        return kernel.variance * a * b;
      case "constant":
        return kernel.value;
      case "periodic": {
        const sine = Math.sin((phase(kernel, a) - phase(other, b)) / 2) / kernel.lengthscale;
        return Math.exp(-2 * sine * sine);
      }
      default: {
        const r = (a - b) / kernel.lengthscale;
        return stationary[kernel.kind].of(r * r);
      }
    }
  }

  /** Return the matrix k(a_n, b_m). */
  function gram(kernel, a, b, other = kernel) {
    const out = matrix(a.length, b.length);
    for (let i = 0; i < a.length; i++) {
      for (let j = 0; j < b.length; j++) out.data[i * b.length + j] = at(kernel, a[i], b[j], other);
    }
    return out;
  }

  /** Return how many normals one random feature takes. */
  function numNormals(kernel) {
    switch (kernel.kind) {
      case "sum":
      case "product":
        return numNormals(kernel.left) + numNormals(kernel.right);
      case "scaled":
        return numNormals(kernel.inner);
      case "periodic":
        return 3;
      case "linear":
      case "constant":
        return 1;
      default:
        return 2 + stationary[kernel.kind].degrees;
    }
  }

  /**
   * Return random features [N, F]; `normals` is [R, F] in one array, and `first` the row where those of this kernel
   * begin.
   */
  function features(kernel, x, normals, count, first = 0) {
    const row = (r) => normals.subarray((first + r) * count, (first + r + 1) * count);
    const filled = (value) => {
      const out = matrix(x.length, count);
      for (let i = 0; i < x.length; i++) for (let f = 0; f < count; f++) out.data[i * count + f] = value(x[i], f);
      return out;
    };
    if (kernel.kind === "sum" || kernel.kind === "product") {
      const left = features(kernel.left, x, normals, count, first);
      const right = features(kernel.right, x, normals, count, first + numNormals(kernel.left)).data;
      const join = kernel.kind === "sum" ? (a, b) => a + b : (a, b) => a * b;
      return matrix(x.length, count, left.data.map((value, i) => join(value, right[i])));
    }
    if (kernel.kind === "scaled") {
      const inner = features(kernel.inner, x, normals, count, first);
      return matrix(x.length, count, inner.data.map((value) => Math.sqrt(kernel.scale) * value));
    }
    if (kernel.kind === "linear") {
      const slope = row(0);
      return filled((a, f) => Math.sqrt(kernel.variance) * a * slope[f]);
    }
    if (kernel.kind === "constant") {
      const sign = row(0);
      return filled((_, f) => Math.sqrt(kernel.value) * (sign[f] >= 0 ? 1 : -1));
    }
    if (kernel.kind === "periodic") {
      const [across, up, start] = [row(0), row(1), row(2)];
      return filled((a, f) => {
        const angle = phase(kernel, a);
        const projected = (Math.cos(angle) * across[f] + Math.sin(angle) * up[f]) / kernel.lengthscale;
        return Math.SQRT2 * Math.cos(projected + 2 * Math.PI * start[f]);
      });
    }
    const [frequency, start, degrees] = [row(0), row(1), stationary[kernel.kind].degrees];
    const scaled = Float64Array.from(frequency, (value, f) => {
      let square = 0;
      for (let d = 0; d < degrees; d++) square += row(2 + d)[f] ** 2;
      const spread = degrees ? 1 / Math.sqrt(Math.max(square / degrees, 1e-6)) : 1;
      return (value * spread) / kernel.lengthscale;
    });
    return filled((a, f) => Math.SQRT2 * Math.cos(a * scaled[f] + 2 * Math.PI * start[f]));
  }

  /** Return the kernel with every period multiplied by a factor. */
  function withPeriodTimes(kernel, factor) {
    if (!kernel) return kernel;
    const out = { ...kernel };
    if (out.kind === "periodic") out.period *= factor;
    for (const part of ["left", "right", "inner"]) if (out[part]) out[part] = withPeriodTimes(out[part], factor);
    return out;
  }

  /** Return the periods of a kernel, from left to right. */
  function periodsOf(kernel) {
    if (!kernel) return [];
    if (kernel.kind === "periodic") return [kernel.period];
    return ["left", "right", "inner"].flatMap((part) => periodsOf(kernel[part]));
  }

  explorer.kernels = { at, gram, numNormals, features, withPeriodTimes, periodsOf };
})((globalThis.explorer ??= {}));
