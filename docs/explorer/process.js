// The integrated output layer. Given one draw of everything below it, the output f(x) is a Gaussian process,
//     cov(f(x), f(x')) = k(x, x') phi(x)' K phi(x') + phi(x)' S phi(x'),
// with phi the scaled activations of the last hidden layer, K the kernel matrix of its units, S the weight noise and k
// the input kernel (1 without one). Points with Gaussian noise then condition it in closed form.
"use strict";
(function (explorer) {
  const { matrix, multiply, timesTransposed, cholesky, solveLower, solve } = explorer.linalg;
  const kernels = explorer.kernels;
  const { taker } = explorer.random;
  const { activationsAt, unitGram } = explorer.network;

  /** Random features of the input kernel in a drawn function. */
  const NUM_FEATURES = 256;

  /** Return the process for one draw; `output` says everything about the output layer. */
  function processOf(draw, output) {
    return { draw, ...output, gram: unitGram(draw.latents, output.lengthscale) };
  }

  /** Return what the output layer sees at inputs x; `kernel` may have another period than that of the process. */
  function rowsAt(process, x, kernel = process.kernel) {
    const h = activationsAt(x, process.draw.hidden, process.activation);
    const [weightScale, biasScale] = process.scale;
    const phi = matrix(h.rows, h.cols, h.data.map((v, i) => v * (i % h.cols < h.cols - 1 ? weightScale : biasScale)));
    return { x, phi, kernel, spread: multiply(phi, process.gram) };
  }

  /** Return the covariance of f at two sets of rows. */
  function covariance(process, a, b) {
    const noise = process.weightNoise ** 2;
    const signal = timesTransposed(a.spread, b.phi);
    const white = timesTransposed(a.phi, b.phi);
    const out = signal.data;
    for (let i = 0, n = 0; i < a.x.length; i++) {
      for (let j = 0; j < b.x.length; j++, n++) {
        const level = process.kernel ? kernels.at(a.kernel, a.x[i], b.x[j], b.kernel) : 1;
        out[n] = out[n] * level + noise * white.data[n];
      }
    }
    return signal;
  }

  /** Return the prior variance of f at every row. */
  function ownVariance(process, rows) {
    const { phi, spread } = rows;
    return Float64Array.from(rows.x, (x, i) => {
      let signal = 0;
      let white = 0;
      for (let k = i * phi.cols; k < (i + 1) * phi.cols; k++) {
        signal += spread.data[k] * phi.data[k];
        white += phi.data[k] * phi.data[k];
      }
      return signal * (process.kernel ? kernels.at(rows.kernel, x, x) : 1) + process.weightNoise ** 2 * white;
    });
  }

  /** Condition the process on points with Gaussian noise; without points it stays as it is, with evidence 1. */
  function condition(process, x, y) {
    const at = rowsAt(process, x);
    if (!x.length) return { process, at, y, logEvidence: 0 };
    const observed = covariance(process, at, at);
    for (let i = 0; i < x.length; i++) observed.data[i * (x.length + 1)] += process.noise ** 2;
    const lower = cholesky(observed);
    const whitened = solveLower(lower, explorer.linalg.column(y)).data;
    let logEvidence = -0.5 * x.length * Math.log(2 * Math.PI);
    for (let i = 0; i < x.length; i++) {
      logEvidence -= 0.5 * whitened[i] ** 2 + Math.log(lower.data[i * (x.length + 1)]);
    }
    return { process, at, y, lower, alpha: solve(lower, y), logEvidence };
  }

  /** Return the mean and the variance of f at rows. */
  function moments(posterior, rows) {
    const variance = ownVariance(posterior.process, rows);
    const mean = new Float64Array(rows.x.length);
    if (!posterior.lower) return { mean, variance };
    const cross = covariance(posterior.process, posterior.at, rows);
    const known = solveLower(posterior.lower, cross);
    for (let i = 0; i < cross.rows; i++) {
      for (let j = 0; j < cross.cols; j++) {
        mean[j] += posterior.alpha[i] * cross.data[i * cross.cols + j];
        variance[j] -= known.data[i * cross.cols + j] ** 2;
      }
    }
    return { mean, variance: variance.map((v) => Math.max(v, 0)) };
  }

  /** Return how many normals a drawn function takes. */
  function functionCount(process, numPoints) {
    const numUnits = process.gram.rows;
    if (!process.kernel) return numPoints + 2 * numUnits;
    return numPoints + NUM_FEATURES * (kernels.numNormals(process.kernel) + numUnits) + numUnits;
  }

  /**
   * Draw a function of the posterior by Matheron's rule: a function of the prior, by random features of the input
   * kernel, plus the correction that makes it agree with the points. The order of the normals is that of the library.
   */
  function drawFunction(posterior, normals) {
    const { process, at, y, lower } = posterior;
    const take = taker(normals);
    const numUnits = process.gram.rows;
    const count = process.kernel ? NUM_FEATURES : 1;
    const own = take(y.length);
    const spectral = process.kernel ? take(kernels.numNormals(process.kernel) * count) : null;
    const grid = matrix(count, numUnits, take(count * numUnits));
    const white = take(numUnits);
    const root = cholesky(process.gram, process.jitter);
    // the kernel of the single output unit with itself, which has the jitter too
    const level = Math.sqrt(1 + process.jitter) / Math.sqrt(count);
    const values = timesTransposed(grid, root);
    values.data.forEach((v, i) => (values.data[i] = v * level));
    const drawn = { process, spectral, count, values, white };
    if (!lower) return { drawn };
    const atPoints = priorValues(drawn, at);
    const gap = Float64Array.from(y, (target, i) => target - atPoints[i] - process.noise * own[i]);
    return { drawn, at, coefficients: solve(lower, gap) };
  }

  function priorValues({ process, spectral, count, values, white }, rows) {
    const each = timesTransposed(rows.phi, values);
    const features = process.kernel ? kernels.features(rows.kernel, rows.x, spectral, count) : null;
    return Float64Array.from(rows.x, (_, i) => {
      let total = 0;
      for (let f = i * count; f < (i + 1) * count; f++) total += each.data[f] * (features ? features.data[f] : 1);
      for (let k = 0; k < white.length; k++) {
        total += rows.phi.data[i * white.length + k] * process.weightNoise * white[k];
      }
      return total;
    });
  }

  /** Return the values of a drawn function at rows. */
  function valuesAt({ drawn, at, coefficients }, rows) {
    const out = priorValues(drawn, rows);
    if (!at) return out;
    const cross = covariance(drawn.process, at, rows);
    for (let i = 0; i < cross.rows; i++) {
      for (let j = 0; j < cross.cols; j++) out[j] += coefficients[i] * cross.data[i * cross.cols + j];
    }
    return out;
  }

  /** Return weights that are proportional to exp(logs) and add up to 1. */
  function normalised(logs) {
    const most = Math.max(...logs);
    const raw = logs.map((value) => Math.exp(value - most));
    const total = raw.reduce((a, b) => a + b);
    return raw.map((value) => value / total);
  }

  /** Return the mean and the variance of y of a mixture of Gaussians with these weights. */
  function mixed(parts, weights, noise) {
    const mean = new Float64Array(parts[0].mean.length);
    const variance = new Float64Array(mean.length);
    parts.forEach((part, s) => part.mean.forEach((m, i) => (mean[i] += weights[s] * m)));
    parts.forEach((part, s) =>
      part.mean.forEach((m, i) => (variance[i] += weights[s] * (part.variance[i] + (m - mean[i]) ** 2))),
    );
    return { mean, variance: variance.map((v) => v + noise ** 2) };
  }

  explorer.process = {
    processOf,
    rowsAt,
    covariance,
    condition,
    moments,
    functionCount,
    drawFunction,
    valuesAt,
    normalised,
    mixed,
  };
})((globalThis.explorer ??= {}));
