// Answers one case, as JSON, from the scripts of the explorer: what its tests compare with the library.
"use strict";
const path = require("node:path");
const fs = require("node:fs");

const folder = path.join(__dirname, "..", "..", "docs", "explorer");
for (const name of ["linalg", "random", "kernels", "network", "process", "fitted"]) require(path.join(folder, `${name}.js`));
const { kernels, network, process: gp, random, fitted } = globalThis.explorer;

const floats = (values) => Float64Array.from(values);
const list = (values) => Array.from(values);

/** Condition one draw on points, and tell everything about it at inputs `at`. */
function told(process, points, at, normals, shown = process.kernel) {
  const posterior = gp.condition(process, floats(points.x), floats(points.y));
  const rows = gp.rowsAt(process, floats(at), shown);
  const { mean, variance } = gp.moments(posterior, rows);
  const values = gp.valuesAt(gp.drawFunction(posterior, floats(normals)), rows);
  return { mean: list(mean), variance: list(variance), logEvidence: posterior.logEvidence, values: list(values) };
}

const cases = {
  kernel: ({ kernel, a, b, normals, count }) => ({
    gram: list(kernels.gram(kernel, floats(a), floats(b)).data),
    features: list(kernels.features(kernel, floats(a), floats(normals.flat()), count).data),
    numNormals: kernels.numNormals(kernel),
  }),
  prior: ({ spec, output, normals, points, at, functionNormals }) => {
    const draw = network.drawPrior(spec, floats(normals));
    const process = gp.processOf(draw, output);
    return {
      ...told(process, points, at, functionNormals),
      count: network.priorCount(spec.sizes, spec.latentDim),
      functionCount: gp.functionCount(process, points.x.length),
      weights: list(draw.hidden.at(-1).data),
      latents: list(draw.latents.data),
    };
  },
  fitted: ({ model, normals, at, functionNormals, factor }) => {
    const process = gp.processOf(network.drawFitted(model, floats(normals)), fitted.outputOf(model));
    const shown = kernels.withPeriodTimes(process.kernel, factor);
    return told(process, fitted.rowsOf(model), at, functionNormals, shown);
  },
  mixture: ({ model, draws, at }) => {
    const points = fitted.rowsOf(model);
    const parts = draws.map((normals) => {
      const process = gp.processOf(network.drawFitted(model, floats(normals)), fitted.outputOf(model));
      return gp.moments(gp.condition(process, points.x, points.y), gp.rowsAt(process, floats(at)));
    });
    const { mean, variance } = gp.mixed(parts, draws.map(() => 1 / draws.length), model.noise);
    return { mean: list(mean), variance: list(variance) };
  },
  activation: ({ name, at }) => ({ values: at.map(network.activations[name]) }),
  mixed: ({ parts, logs, noise }) => {
    const weights = gp.normalised(logs);
    const own = parts.map(({ mean, variance }) => ({ mean: floats(mean), variance: floats(variance) }));
    const { mean, variance } = gp.mixed(own, weights, noise);
    return { weights, mean: list(mean), variance: list(variance) };
  },
  normals: ({ seed, count }) => ({ normals: list(random.normals(seed, count)) }),
};

const { case: name, ...inputs } = JSON.parse(fs.readFileSync(0, "utf-8"));
process.stdout.write(JSON.stringify(cases[name](inputs)));
