// Fitted models: their parameters, as export.py writes them, in the form in which the output layer takes them.
"use strict";
(function (explorer) {
  /** Return what the output layer of a fitted model is, in standardised units. */
  function outputOf(model) {
    const { activation, lengthscale, weightNoise, noise, scale, kernel, jitter } = model;
    return { activation, lengthscale, weightNoise, noise, scale, kernel, jitter };
  }

  /** Return the rows of the data, and points that were added, in standardised units. */
  function rowsOf(model, added = []) {
    const [x, y] = [model.data.x.concat(added.map((p) => p.x)), model.data.y.concat(added.map((p) => p.y))];
    return { x: toUnits(x, model.x_unit), y: toUnits(y, model.y_unit) };
  }

  const toUnits = (values, [offset, scale]) => Float64Array.from(values, (v) => (v - offset) / scale);
  const fromUnits = (values, [offset, scale]) => values.map((v) => offset + scale * v);

  explorer.fitted = { outputOf, rowsOf, toUnits, fromUnits };
})((globalThis.explorer ??= {}));
