// What the page shows: from settings and points to a mean, a band and drawn functions on a grid.
"use strict";
(function (explorer) {
  const { random, kernels, network, process: gp, fitted } = explorer;

  const NUM_GRID = 200;
  const NUM_FUNCTIONS = 10;
  /** Draws of the hidden layers from the prior that are weighted by their evidence, and those that are shown. */
  const PRIOR_DRAWS = 512;
  const SHOWN_DRAWS = 64;
  const FITTED_DRAWS = 16;
  const LATENT_DIM = 2;
  const JITTER = 1e-6;
  const VIEW = { x: [-4, 4], y: [-4, 4] };

  const grid = ([low, high]) => Float64Array.from({ length: NUM_GRID }, (_, i) => low + ((high - low) * i) / (NUM_GRID - 1));

  /** Return the input kernel that the settings name, or null. */
  function kernelOf(settings) {
    const periodic = { kind: "periodic", period: settings.period, lengthscale: settings.smoothness };
    const linear = { kind: "linear", variance: 0.25 };
    const simple = (kind) => ({ kind, lengthscale: settings.lengthscale });
    const pair = (kind, left, right) => ({ kind, left, right });
    switch (settings.kernel) {
      case "none":
        return null;
      case "periodic":
        return periodic;
      case "linear+rbf":
        return pair("sum", linear, simple("rbf"));
      case "linear+periodic":
        return pair("sum", linear, periodic);
      case "periodic*rbf":
        return pair("product", periodic, simple("rbf"));
      default:
        return simple(settings.kernel);
    }
  }

  // Normals are kept, so that a slider moves the same functions.
  const kept = new Map();
  function normalsFor(name, seed, count) {
    const known = kept.get(name);
    if (known && known.seed === seed && known.values.length >= count) return known.values.subarray(0, count);
    const values = random.normals(seed, count);
    kept.set(name, { seed, values });
    return values;
  }

  /** Return `count` draws, each as often as its weight says: systematic resampling. */
  function resampled(weights, count) {
    let [chosen, total] = [0, weights[0]];
    return Array.from({ length: count }, (_, j) => {
      while (total < (j + 0.5) / count && chosen < weights.length - 1) total += weights[++chosen];
      return chosen;
    });
  }

  /** Draw functions, from posteriors that are evenly spread over the given ones. */
  function functionsOf(posteriors, rows, seed) {
    return Array.from({ length: NUM_FUNCTIONS }, (_, j) => {
      const chosen = Math.floor(((j + 0.5) / NUM_FUNCTIONS) * posteriors.length);
      const posterior = posteriors[chosen];
      const count = gp.functionCount(posterior.process, posterior.y.length);
      const values = normalsFor(`function ${j}`, seed + 1000 + j, count);
      return gp.valuesAt(gp.drawFunction(posterior, values), rows[chosen]);
    });
  }

  const effective = (weights) => 1 / weights.reduce((sum, w) => sum + w * w, 0);

  // The draws below the output layer are kept while nothing changes that they depend on.
  let below = { key: "", processes: [] };
  function drawsBelow(number, count, draw, spec, seed) {
    const key = JSON.stringify([spec, seed]);
    if (below.key === key) return below.processes;
    const normals = normalsFor("below", seed, count * number);
    const { lengthscale } = spec;
    const processes = Array.from({ length: number }, (_, s) =>
      gp.processOf(draw(spec, normals.subarray(s * count, (s + 1) * count)), { lengthscale }),
    );
    below = { key, processes };
    return processes;
  }

  function outputOfPrior(settings, spec) {
    const [weightScale, biasScale] = spec.scales.at(-1);
    const { activation, noise } = settings;
    const { lengthscale, weightNoise, jitter } = spec;
    const scale = [settings.strength * weightScale, biasScale];
    return { activation, noise, lengthscale, weightNoise, jitter, scale, kernel: kernelOf(settings) };
  }

  function specOfPrior(settings) {
    const sizes = [1, ...Array(settings.depth).fill(settings.width), 1];
    return {
      sizes,
      latentDim: LATENT_DIM,
      lengthscale: Array(LATENT_DIM).fill(settings.weights),
      weightNoise: settings.weightNoise,
      scales: sizes.slice(0, -1).map((n) => [1 / Math.sqrt(n), 1]),
      jitter: JITTER,
    };
  }

  /** Return the scene of a prior, conditioned on points if there are any. */
  function prior(settings, points, seed) {
    const spec = specOfPrior(settings);
    const output = outputOfPrior(settings, spec);
    const [px, py] = ["x", "y"].map((name) => Float64Array.from(points, (p) => p[name]));
    const count = network.priorCount(spec.sizes, LATENT_DIM);
    const all = drawsBelow(PRIOR_DRAWS, count, network.drawPrior, spec, seed);
    const processes = all.slice(0, points.length ? PRIOR_DRAWS : SHOWN_DRAWS);
    const posteriors = processes.map((process) => gp.condition({ ...process, ...output }, px, py));
    const weights = gp.normalised(posteriors.map((posterior) => posterior.logEvidence));
    const x = grid(VIEW.x);
    const shown = resampled(weights, SHOWN_DRAWS).map((s) => posteriors[s]);
    const known = new Map(shown.map((posterior) => [posterior, null]));
    for (const posterior of known.keys()) {
      const rows = gp.rowsAt(posterior.process, x);
      known.set(posterior, { rows, part: gp.moments(posterior, rows) });
    }
    const parts = shown.map((posterior) => known.get(posterior).part);
    const { mean, variance } = gp.mixed(parts, Array(SHOWN_DRAWS).fill(1 / SHOWN_DRAWS), output.noise);
    return {
      view: VIEW,
      x,
      mean: points.length ? mean : null,
      band: variance.map(Math.sqrt),
      middle: mean,
      functions: functionsOf(shown, shown.map((posterior) => known.get(posterior).rows), seed),
      data: [],
      draws: processes.length,
      effective: effective(weights),
    };
  }

  /** Return how much of the x axis and the y axis a fitted model shows. */
  function viewOf(model) {
    const wide = (values, share) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      return [low - share * (high - low), high + share * (high - low)];
    };
    return { x: wide(model.data.x, 0.5), y: wide(model.data.y, 0.5) };
  }

  /** Return the scene of a fitted model, whose period is multiplied by `factor`, and which sees points as well. */
  function fittedModel(model, { factor, learned }, points, seed) {
    const view = viewOf(model);
    const x = grid(view.x);
    const output = fitted.outputOf(model);
    const shown = kernels.withPeriodTimes(output.kernel, factor);
    if (learned === "again") output.kernel = shown;
    const rowsOfData = fitted.rowsOf(model, points);
    const inUnits = fitted.toUnits(x, model.x_unit);
    const processes = drawsBelow(FITTED_DRAWS, network.fittedCount(model), network.drawFitted, model, seed);
    const posteriors = processes.map((process) => gp.condition({ ...process, ...output }, rowsOfData.x, rowsOfData.y));
    const rows = posteriors.map((posterior) => gp.rowsAt(posterior.process, inUnits, shown));
    const weights = Array(FITTED_DRAWS).fill(1 / FITTED_DRAWS);
    const parts = posteriors.map((posterior, s) => gp.moments(posterior, rows[s]));
    const { mean, variance } = gp.mixed(parts, weights, output.noise);
    const scale = model.y_unit[1];
    const functions = functionsOf(posteriors, rows, seed);
    return {
      view,
      x,
      mean: fitted.fromUnits(mean, model.y_unit),
      band: variance.map((v) => scale * Math.sqrt(v)),
      middle: fitted.fromUnits(mean, model.y_unit),
      functions: functions.map((values) => fitted.fromUnits(values, model.y_unit)),
      data: model.data.x.map((value, i) => ({ x: value, y: model.data.y[i] })),
    };
  }

  /** Return the period of a fitted model in the units of its data, or null. */
  function fittedPeriod(model) {
    const periods = kernels.periodsOf(model.kernel);
    return periods.length ? periods[0] * model.x_unit[1] : null;
  }

  explorer.scenes = { prior, fittedModel, fittedPeriod, VIEW, viewOf };
})((globalThis.explorer ??= {}));
