// The controls: settings, points by mouse and by keyboard, and when the picture is drawn anew.
"use strict";
(function (explorer) {
  const { scenes, words, plot, models } = explorer;
  const $ = (id) => document.getElementById(id);
  const SLIDERS = ["period", "smoothness", "lengthscale", "weights", "strength", "width", "weight-noise", "noise"];
  /** Pixels within which a click is on a point. */
  const NEAR = 12;
  /** Milliseconds of rest after which the summary is said. */
  const REST = 350;

  const state = { mode: "prior", seed: 1, points: { prior: [] }, cursor: null, showsCursor: false };
  let shown = { scene: null, frame: null };
  let speaking = 0;
  let waiting = false;

  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
  const model = () => models.models[Number($("model").value)];
  const pointsKey = () => (state.mode === "prior" ? "prior" : model().name);
  const points = () => (state.points[pointsKey()] ??= []);

  function priorSettings() {
    const kernel = $("kernel").value;
    const number = (id) => Number($(id).value);
    return {
      kernel,
      hasPeriod: kernel.includes("periodic"),
      period: number("period"),
      smoothness: number("smoothness"),
      lengthscale: number("lengthscale"),
      weights: number("weights"),
      strength: number("strength"),
      depth: number("depth"),
      width: number("width"),
      activation: $("activation").value,
      weightNoise: number("weight-noise"),
      noise: number("noise"),
    };
  }

  const fittedSettings = () => ({ factor: 2 ** Number($("factor").value), learned: chosen("learned") });

  // --- the picture -----------------------------------------------------------------------

  function compute() {
    if (state.mode === "prior") {
      const settings = priorSettings();
      const scene = scenes.prior(settings, points(), state.seed);
      return [scene, words.ofPrior(scene, settings, points().length)];
    }
    const settings = fittedSettings();
    const scene = scenes.fittedModel(model(), settings, points(), state.seed);
    return [scene, words.ofFitted(scene, model(), settings, points().length)];
  }

  function refresh() {
    waiting = false;
    const [scene, summary] = compute();
    shown.scene = scene;
    repaint();
    clearTimeout(speaking);
    speaking = setTimeout(() => ($("summary").textContent = summary), REST);
  }

  function repaint() {
    if (!shown.scene) return;
    shown.frame = plot.draw($("plot"), shown.scene, points(), state.showsCursor ? state.cursor : null);
  }

  /** Draw anew before the next frame, however many changes come until then. */
  function schedule() {
    showControls();
    if (!waiting) requestAnimationFrame(refresh);
    waiting = true;
  }

  function showControls() {
    const { kernel, hasPeriod } = priorSettings();
    const period = scenes.fittedPeriod(model());
    const needs = {
      period: hasPeriod,
      smoothness: hasPeriod,
      lengthscale: /rbf|matern/.test(kernel),
      "fitted-period": period !== null,
    };
    for (const part of document.querySelectorAll("[data-mode]")) part.hidden = part.dataset.mode !== state.mode;
    for (const part of document.querySelectorAll("[data-needs]")) part.hidden = !needs[part.dataset.needs];
    for (const id of SLIDERS) $(`${id}-value`).textContent = Number($(id).value).toFixed(id === "width" ? 0 : 2);
    const { factor } = fittedSettings();
    if (period !== null) {
      const text = `${words.said(factor * period)}${factor === 1 ? " (fitted)" : ""}`;
      $("factor-value").textContent = text;
      $("factor").setAttribute("aria-valuetext", text);
    }
    for (const id of ["undo", "clear"]) $(id).disabled = points().length === 0;
    showLegend();
    $("about").textContent = about();
  }

  function about() {
    const { data, hidden, activation } = model();
    const units = hidden.map((layer) => layer.shape[1]).join(" and ");
    return `${data.x.length} rows; ${units} ${activation} units.`;
  }

  function showLegend() {
    const entries = [["function", "drawn functions"], ["band", "mean ± 2 standard deviations"]];
    if (state.mode === "fitted" || points().length) entries.push(["mean", "mean"]);
    if (state.mode === "fitted") entries.push(["data", "data"]);
    if (points().length) entries.push(["added", "added points"]);
    $("legend").replaceChildren(
      ...entries.map(([kind, text]) => {
        const item = document.createElement("li");
        const key = document.createElement("span");
        key.className = `key ${kind}`;
        item.append(key, text);
        return item;
      }),
    );
  }

  // --- points ----------------------------------------------------------------------------

  const rounded = (value, [low, high]) => {
    const digits = Math.max(0, 3 - Math.floor(Math.log10(high - low)));
    return Number(Math.min(Math.max(value, low), high).toFixed(digits));
  };

  function addPoint(x, y) {
    const { view } = shown.scene;
    points().push({ x: rounded(x, view.x), y: rounded(y, view.y) });
    schedule();
  }

  function removePoint(place) {
    points().splice(place, 1);
    schedule();
  }

  /** Return the number of the added point that is nearest to a place in pixels, and its distance. */
  function nearest(px, py) {
    const distances = points().map((p) => Math.hypot(shown.frame.toX(p.x) - px, shown.frame.toY(p.y) - py));
    const distance = Math.min(...distances);
    return { place: distances.indexOf(distance), distance };
  }

  function onClick(event) {
    const box = $("plot").getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const { left, top, width, height } = shown.frame;
    if (px < left || px > left + width || py < top || py > top + height) return;
    state.showsCursor = false;
    const { place, distance } = nearest(px, py);
    if (distance < NEAR) removePoint(place);
    else addPoint(shown.frame.fromX(px), shown.frame.fromY(py));
  }

  // --- the cursor ------------------------------------------------------------------------

  const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  function cursorInside() {
    const { view } = shown.scene;
    const middle = ([low, high]) => (low + high) / 2;
    state.cursor ??= { x: middle(view.x), y: middle(view.y) };
    state.cursor = { x: rounded(state.cursor.x, view.x), y: rounded(state.cursor.y, view.y) };
    return state.cursor;
  }

  function moveCursor([dx, dy], far) {
    const { view } = shown.scene;
    const steps = far ? 10 : 80;
    const cursor = cursorInside();
    state.cursor = {
      x: rounded(cursor.x + (dx * (view.x[1] - view.x[0])) / steps, view.x),
      y: rounded(cursor.y + (dy * (view.y[1] - view.y[0])) / steps, view.y),
    };
    say(`x = ${words.said(state.cursor.x)}, y = ${words.said(state.cursor.y)}. ${believed()}`);
    repaint();
  }

  /** Return what the picture says at the cursor. */
  function believed() {
    const { x, middle, band } = shown.scene;
    const [low, high] = [x[0], x[x.length - 1]];
    const i = Math.round(((state.cursor.x - low) / (high - low)) * (x.length - 1));
    return `Here the mean is ${words.said(middle[i])}, plus or minus ${words.said(2 * band[i])}.`;
  }

  const say = (text) => ($("cursor").textContent = text);

  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    if (MOVES[key]) {
      state.showsCursor = true;
      moveCursor(MOVES[key], event.shiftKey);
    } else if (key === "Enter" || key === " ") {
      state.showsCursor = true;
      const { x, y } = cursorInside();
      addPoint(x, y);
      say(`Added a point at x = ${words.said(x)}, y = ${words.said(y)}.`);
    } else if ((key === "Delete" || key === "Backspace") && points().length) {
      const { x, y } = cursorInside();
      const { place } = nearest(shown.frame.toX(x), shown.frame.toY(y));
      const point = points()[place];
      removePoint(place);
      say(`Removed the point at x = ${words.said(point.x)}, y = ${words.said(point.y)}.`);
    } else {
      return;
    }
    event.preventDefault();
  }

  // --- light and dark --------------------------------------------------------------------

  // The site keeps its choice under these names; a page opened from disk may have no storage.
  function stored(name, value) {
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  }

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

  function showTheme() {
    $("theme").setAttribute("aria-pressed", String(isDark()));
    repaint();
  }

  function startTheme() {
    const mode = stored("mode");
    if (mode === "light" || mode === "dark") document.documentElement.dataset.theme = mode;
    $("theme").addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      for (const name of ["mode", "theme"]) stored(name, theme);
      showTheme();
    });
    prefersDark.addEventListener("change", showTheme);
    showTheme();
  }

  // --- start -----------------------------------------------------------------------------

  function start() {
    models.models.forEach((own, i) => $("model").add(new Option(own.title, String(i))));
    $("controls").addEventListener("input", (event) => {
      if (event.target.id === "model") $("factor").value = "0";
      schedule();
    });
    for (const radio of document.querySelectorAll('input[name="mode"]')) {
      radio.addEventListener("change", () => {
        state.mode = chosen("mode");
        state.cursor = null;
        schedule();
      });
    }
    $("again").addEventListener("click", () => {
      state.seed += 10_000;
      schedule();
    });
    $("undo").addEventListener("click", () => removePoint(points().length - 1));
    $("clear").addEventListener("click", () => {
      points().length = 0;
      schedule();
    });
    $("trained").addEventListener("click", () => {
      $("factor").value = "0";
      schedule();
    });
    const canvas = $("plot");
    canvas.addEventListener("click", onClick);
    canvas.addEventListener("keydown", onKey);
    canvas.addEventListener("blur", () => {
      state.showsCursor = false;
      repaint();
    });
    new ResizeObserver(repaint).observe(canvas);
    startTheme();
    // a reload keeps what forms held
    state.mode = chosen("mode");
    schedule();
  }

  start();
})((globalThis.explorer ??= {}));
