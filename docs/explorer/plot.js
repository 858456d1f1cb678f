// Draws a scene on a canvas: axes, band, functions, mean, points and the cursor.
"use strict";
(function (explorer) {
  const MARGIN = { left: 46, right: 12, top: 12, bottom: 40 };

  /** Return round numbers between two ends, about `count` of them. */
  function ticks([low, high], count) {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
    const out = [];
    for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) out.push(k * step);
    return { values: out, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  /** Return the maps between the units of the data and the pixels of a canvas of this size. */
  function frameOf(view, width, height) {
    const [inner, outer] = [width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom];
    const [[x0, x1], [y0, y1]] = [view.x, view.y];
    return {
      left: MARGIN.left,
      top: MARGIN.top,
      width: inner,
      height: outer,
      toX: (x) => MARGIN.left + ((x - x0) / (x1 - x0)) * inner,
      toY: (y) => MARGIN.top + ((y1 - y) / (y1 - y0)) * outer,
      fromX: (px) => x0 + ((px - MARGIN.left) / inner) * (x1 - x0),
      fromY: (py) => y1 - ((py - MARGIN.top) / outer) * (y1 - y0),
    };
  }

  function colours(element) {
    const style = getComputedStyle(element);
    return (name) => style.getPropertyValue(`--${name}`).trim();
  }

  function drawAxes(context, frame, view, colour) {
    context.font = "13px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = colour("grid");
    context.fillStyle = colour("muted");
    const across = ticks(view.x, Math.max(4, Math.floor(frame.width / 70)));
    const up = ticks(view.y, Math.max(4, Math.floor(frame.height / 55)));
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const value of across.values) {
      line(context, [frame.toX(value), frame.top], [frame.toX(value), frame.top + frame.height]);
      context.fillText(written(value, across.digits), frame.toX(value), frame.top + frame.height + 6);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of up.values) {
      line(context, [frame.left, frame.toY(value)], [frame.left + frame.width, frame.toY(value)]);
      context.fillText(written(value, up.digits), frame.left - 6, frame.toY(value));
    }
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.fillText("x", frame.left + frame.width / 2, frame.top + frame.height + 36);
    context.fillText("y", 9, frame.top + frame.height / 2);
  }

  const written = (value, digits) => (Math.abs(value) < 1e-9 ? 0 : value).toFixed(digits).replace("-", "−");

  function line(context, from, to) {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  }

  function curve(context, frame, x, y) {
    context.beginPath();
    x.forEach((value, i) => context.lineTo(frame.toX(value), frame.toY(y[i])));
    context.stroke();
  }

  function drawBand(context, frame, { x, middle, band }, colour) {
    context.fillStyle = colour("band");
    context.beginPath();
    x.forEach((value, i) => context.lineTo(frame.toX(value), frame.toY(middle[i] + 2 * band[i])));
    for (let i = x.length - 1; i >= 0; i--) context.lineTo(frame.toX(x[i]), frame.toY(middle[i] - 2 * band[i]));
    context.fill();
  }

  function dot(context, frame, point, radius) {
    context.beginPath();
    context.arc(frame.toX(point.x), frame.toY(point.y), radius, 0, 2 * Math.PI);
  }

  function drawPoints(context, frame, data, points, colour) {
    context.fillStyle = colour("data");
    for (const point of data) {
      dot(context, frame, point, 3);
      context.fill();
    }
    context.fillStyle = colour("added");
    context.strokeStyle = colour("ground");
    context.lineWidth = 2;
    for (const point of points) {
      dot(context, frame, point, 6.5);
      context.fill();
      context.stroke();
    }
  }

  function drawCursor(context, frame, cursor, colour) {
    context.strokeStyle = colour("text");
    context.lineWidth = 1;
    context.setLineDash([4, 4]);
    const [x, y] = [frame.toX(cursor.x), frame.toY(cursor.y)];
    line(context, [x, frame.top], [x, frame.top + frame.height]);
    line(context, [frame.left, y], [frame.left + frame.width, y]);
    context.setLineDash([]);
    context.lineWidth = 2;
    dot(context, frame, cursor, 8);
    context.stroke();
  }

  /** Draw a scene, the added points, and the cursor if there is one; return the frame. */
  function draw(canvas, scene, points, cursor) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const colour = colours(canvas);
    const frame = frameOf(scene.view, width, height);
    context.clearRect(0, 0, width, height);
    drawAxes(context, frame, scene.view, colour);
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.width, frame.height);
    context.clip();
    drawBand(context, frame, scene, colour);
    context.lineJoin = "round";
    context.strokeStyle = colour("function");
    context.lineWidth = scene.mean ? 1 : 1.5;
    for (const values of scene.functions) curve(context, frame, scene.x, values);
    if (scene.mean) {
      context.strokeStyle = colour("mean");
      context.lineWidth = 3;
      curve(context, frame, scene.x, scene.mean);
    }
    drawPoints(context, frame, scene.data, points, colour);
    if (cursor) drawCursor(context, frame, cursor, colour);
    context.restore();
    context.strokeStyle = colour("muted");
    context.lineWidth = 1;
    context.strokeRect(frame.left, frame.top, frame.width, frame.height);
    return frame;
  }

  explorer.plot = { draw, ticks, frameOf };
})((globalThis.explorer ??= {}));
