// The layers below the output layer: their weights, drawn from the prior or from a fitted posterior, and the
// activations that they give.
"use strict";
(function (explorer) {
  const { matrix, multiply, timesTransposed, cholesky } = explorer.linalg;
  const { taker } = explorer.random;

  const logistic = (x) => 1 / (1 + Math.exp(-x));
  const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  const activations = {
    tanh: Math.tanh,
    relu: (x) => Math.max(x, 0),
    logistic,
    silu: (x) => x * logistic(x),
    softplus,
    identity: (x) => x,
  };

  /** Return exp(-r^2 / 2) of the latents of units, with one lengthscale for every dimension. */
  function unitGram(latents, lengthscale) {
    const out = matrix(latents.rows, latents.rows);
    for (let i = 0; i < latents.rows; i++) {
      for (let j = 0; j < latents.rows; j++) {
        let r2 = 0;
        for (let d = 0; d < latents.cols; d++) {
          const r = (latents.data[i * latents.cols + d] - latents.data[j * latents.cols + d]) / lengthscale[d];
          r2 += r * r;
        }
        out.data[i * latents.rows + j] = Math.exp(-0.5 * r2);
      }
    }
    return out;
  }

  const someRows = (a, from, to) => matrix(to - from, a.cols, a.data.subarray(from * a.cols, to * a.cols));

  /** Multiply the weights by their scale and the biases, the last row, by theirs. */
  function scaled(weights, [weightScale, biasScale]) {
    const bias = (weights.rows - 1) * weights.cols;
    return { ...weights, data: weights.data.map((w, i) => w * (i < bias ? weightScale : biasScale)) };
  }

  /** Return how many normals one draw of everything below the output layer takes. */
  function priorCount(sizes, latentDim) {
    let count = (sizes.reduce((a, b) => a + b) + sizes.length - 1) * latentDim;
    for (let l = 0; l < sizes.length - 2; l++) count += 2 * (sizes[l] + 1) * sizes[l + 1];
    return count;
  }

  /**
   * Draw everything below the output layer from the prior: the latents of all units, then the weights of every hidden
   * layer, whose covariance is the product of the kernel at their two ends (exact, on the grid of the units).
   */
  function drawPrior(spec, normals) {
    const { sizes, latentDim, lengthscale, weightNoise, scales, jitter } = spec;
    const take = taker(normals);
    const numUnits = sizes.reduce((a, b) => a + b) + sizes.length - 1;
    const latents = matrix(numUnits, latentDim, take(numUnits * latentDim));
    const hidden = [];
    let start = 0;
    for (let l = 0; l < sizes.length - 2; l++) {
      const next = start + sizes[l] + 1;
      const rootIn = cholesky(unitGram(someRows(latents, start, next), lengthscale), jitter);
      const rootOut = cholesky(unitGram(someRows(latents, next, next + sizes[l + 1]), lengthscale), jitter);
      const grid = matrix(rootIn.rows, rootOut.rows, take(rootIn.rows * rootOut.rows));
      const weights = timesTransposed(multiply(rootIn, grid), rootOut);
      const noise = take(weights.data.length);
      weights.data.forEach((w, i) => (weights.data[i] = w + weightNoise * noise[i]));
      hidden.push(scaled(weights, scales[l]));
      start = next;
    }
    return { hidden, latents: someRows(latents, start, start + sizes.at(-2) + 1) };
  }

  /** Return how many normals one draw below the output layer of a fitted model takes. */
  function fittedCount(model) {
    return model.hidden.reduce((count, layer) => count + layer.mean.length, model.latents.mean.length);
  }

  /** Draw the latents of the last hidden units and the weights of every hidden layer from the fitted posterior. */
  function drawFitted(model, normals) {
    const take = taker(normals);
    const { mean, log_std, dim } = model.latents;
    const own = take(mean.length);
    const z = Float64Array.from(mean, (m, i) => m + Math.exp(log_std[i]) * own[i]);
    const hidden = model.hidden.map((layer) => {
      const [rows, cols] = layer.shape;
      const drawn = spread(layer, take(layer.mean.length));
      return scaled(matrix(rows, cols, drawn), layer.scale);
    });
    return { hidden, latents: matrix(z.length / dim, dim, z) };
  }

  /** Return mean + T normals, where T is diagonal, or lower with its rows below the diagonal in `below`. */
  function spread({ mean, log_std, below }, normals) {
    return Float64Array.from(mean, (m, i) => {
      let value = m + Math.exp(log_std[i]) * normals[i];
      if (below) for (let j = 0; j < i; j++) value += below[(i * (i - 1)) / 2 + j] * normals[j];
      return value;
    });
  }

  /** Return the activations below the output layer at inputs x, the bias unit's 1 last. */
  function activationsAt(x, hidden, name) {
    const activation = activations[name];
    let h = withBias(explorer.linalg.column(x));
    for (const weights of hidden) {
      const before = multiply(h, weights);
      h = withBias(matrix(before.rows, before.cols, before.data.map(activation)));
    }
    return h;
  }

  function withBias(a) {
    const out = matrix(a.rows, a.cols + 1).data.fill(1);
    for (let i = 0; i < a.rows; i++) out.set(a.data.subarray(i * a.cols, (i + 1) * a.cols), i * (a.cols + 1));
    return matrix(a.rows, a.cols + 1, out);
  }

  explorer.network = { activations, unitGram, priorCount, drawPrior, fittedCount, drawFitted, activationsAt };
})((globalThis.explorer ??= {}));
