// The picture in words, for those who do not see it and for those who do.
"use strict";
(function (explorer) {
  const said = (value) => {
    const rounded = Number(value.toFixed(Math.abs(value) >= 10 ? 1 : 2));
    return String(rounded === 0 ? 0 : rounded).replace("-", "−");
  };
  const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;
  const kernelNames = {
    none: "no input kernel",
    rbf: "an RBF input kernel",
    matern32: "a Matern 3/2 input kernel",
    matern12: "a Matern 1/2 input kernel",
    periodic: "a periodic input kernel",
    "linear+rbf": "a linear + RBF input kernel",
    "linear+periodic": "a linear + periodic input kernel",
    "periodic*rbf": "a periodic x RBF input kernel",
  };

  /** Return where the band is narrowest and where it is widest. */
  function bandInWords({ x, band }) {
    let [least, most] = [0, 0];
    band.forEach((value, i) => {
      if (value < band[least]) least = i;
      if (value > band[most]) most = i;
    });
    const at = (i) => `plus or minus ${said(2 * band[i])} at x = ${said(x[i])}`;
    return `The band is narrowest, ${at(least)}, and widest, ${at(most)}.`;
  }

  function rangeInWords(name, x, values) {
    let [low, high] = [0, 0];
    values.forEach((value, i) => {
      if (value < values[low]) low = i;
      if (value > values[high]) high = i;
    });
    const at = (i) => `${said(values[i])} at x = ${said(x[i])}`;
    return `${name} lies between ${at(low)} and ${at(high)}.`;
  }

  /** Return the scene of a prior in words. */
  function ofPrior(scene, settings, numPoints) {
    const layers = counted(settings.depth, "hidden layer", "hidden layers");
    const period = settings.hasPeriod ? ` with period ${said(settings.period)}` : "";
    const network = `a network of ${layers} of ${settings.width} units with ${kernelNames[settings.kernel]}${period}`;
    if (!numPoints) {
      return `Ten functions from the prior of ${network}. ${bandInWords(scene)} Add points to see what they change.`;
    }
    const count = Math.max(1, Math.round(scene.effective));
    const few = scene.effective < 10 ? " That is few, so the picture is coarse." : "";
    return (
      `The posterior of ${network}, after ${counted(numPoints, "point", "points")}. ` +
      `${rangeInWords("The mean", scene.x, scene.mean)} ${bandInWords(scene)} ` +
      `Of ${scene.draws} draws of the hidden layers, about ${count} carr${count === 1 ? "ies" : "y"} the weight.${few}`
    );
  }

  /** Return the scene of a fitted model in words. */
  function ofFitted(scene, model, { factor, learned }, numPoints) {
    const fittedPeriod = explorer.scenes.fittedPeriod(model);
    let period = "";
    if (fittedPeriod && factor === 1) period = ` The fitted period is ${said(fittedPeriod)}.`;
    if (fittedPeriod && factor !== 1) {
      const how = learned === "again" ? "the output layer has seen the data again" : "what was learned is kept";
      period = ` The period is set to ${said(factor * fittedPeriod)} in place of the fitted ${said(fittedPeriod)}, and ${how}.`;
    }
    const added = numPoints ? ` ${counted(numPoints, "point was", "points were")} added.` : "";
    return (
      `${model.title}, fitted to ${scene.data.length} rows.${period}${added} ` +
      `${rangeInWords("The mean", scene.x, scene.mean)} ${bandInWords(scene)}`
    );
  }

  explorer.words = { said, ofPrior, ofFitted };
})((globalThis.explorer ??= {}));
