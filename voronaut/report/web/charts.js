// Curves with intervals: one chart for each task and quantity.
const panelOf = (element) => data.tasks[element.dataset.task].panels[element.dataset.panel];
const shown = (panel) => Object.entries(panel.curves).filter(([method]) => !hidden.has(method));

function band(curve, style) {
  const known = curve.x.map((_, i) => i).filter((i) => curve.low[i] !== null);
  const line = (values, more) => ({
    x: known.map((i) => curve.x[i]), y: known.map((i) => values[i]), mode: "lines", line: { width: 0 }, hoverinfo: "skip", ...more,
  });
  return [line(curve.low, {}), line(curve.high, { fill: "tonexty", fillcolor: faint(style.color, 0.14) })];
}

function seedLines(curve, style) {
  return Object.values(curve.seeds || {}).map((values) => ({
    x: curve.x, y: values, mode: "lines", line: { width: 1, color: faint(style.color, 0.5) }, hoverinfo: "skip",
  }));
}

function meanLine(method, curve, style) {
  const one = curve.x.length === 1;
  return {
    x: curve.x, y: curve.mean, name: plain(method), mode: one ? "markers" : "lines",
    line: { color: style.color, width: 2, dash: style.dash }, marker: { color: style.color, size: 8 },
    text: curve.x.map((_, i) => plain(`${method}: ${sentence(curve, i)}`)), hovertemplate: "%{text}<extra></extra>",
  };
}

function sentence(curve, i) {
  const mean = short(curve.mean[i]);
  if (curve.n && !curve.low) return `${mean} (mean of ${curve.n[i]})`;
  if (!curve.low || curve.low[i] === null) return mean;
  return `${mean} (${short(curve.low[i])} to ${short(curve.high[i])}, ${curve.n[i]} seeds)`;
}

function chart(element) {
  const panel = panelOf(element);
  const curves = shown(panel);
  const bands = curves.flatMap(([m, c]) => (c.low ? band(c, data.methods[m]) : []));
  const seeds = curves.flatMap(([m, c]) => (showing.seeds || !c.low ? seedLines(c, data.methods[m]) : []));
  const means = curves.map(([m, c]) => meanLine(m, c, data.methods[m]));
  return {
    traces: [...bands, ...seeds, ...means],
    look: {
      hovermode: "x unified",
      xaxis: { title: { text: "environment steps", standoff: 8 }, tickformat: "~s", unifiedhovertitle: { text: "%{x:,} steps" }, rangemode: "tozero" },
      annotations: curves.length ? [] : [{
        text: "no method is shown", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5,
      }],
    },
  };
}

// Without a mouse: arrow keys walk along the curves, and the values stand below the chart.
function walk(element, event) {
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
  if (!(event.key in moves)) return;
  event.preventDefault();
  const curves = shown(panelOf(element));
  const steps = curves.map(([, curve]) => curve.x).reduce((a, b) => (b.length > a.length ? b : a), []);
  if (!steps.length) return;
  const before = element.place === undefined ? (moves[event.key] < 0 ? steps.length : -1) : element.place;
  element.place = Math.max(0, Math.min(steps.length - 1, before + moves[event.key]));
  say(element, curves, steps[element.place]);
}

function say(element, curves, step) {
  const parts = curves.map(([method, curve]) => {
    const i = curve.x.findIndex((x) => x >= step);
    return `${method} ${i < 0 ? "has not come that far" : sentence(curve, i)}`;
  });
  element.parentElement.querySelector(".readout").textContent = `${step.toLocaleString("en")} steps: ${parts.join("; ")}`;
  Plotly.Fx.hover(element, { xval: step }, "xy");
}

function startCharts() {
  each("select.panel", (select) => {
    const element = select.closest("figure").querySelector(".chart");
    element.dataset.panel = select.value;
    select.addEventListener("change", () => {
      element.dataset.panel = select.value;
      element.place = undefined;
      element.parentElement.querySelector(".readout").textContent = "";
      if (drawn.has(element)) drawn.get(element)();
    });
  });
  each(".chart[data-panel]", (element) => {
    whenNear(element, () => draw(element, () => chart(element)));
    element.addEventListener("keydown", (event) => drawn.has(element) && walk(element, event));
    element.addEventListener("blur", () => drawn.has(element) && Plotly.Fx.unhover(element));
  });
}

function costChart() {
  const rows = data.costs.filter((row) => !hidden.has(row.method));
  const names = rows.map((row) => plain(data.tasks.length > 1 ? `${row.method}, ${row.task}` : row.method));
  const most = innerWidth < 500 ? 16 : 36;
  const colors = Object.fromEntries([...document.querySelectorAll(".keys i")].map((key) => [key.dataset.part, key.dataset.color]));
  return {
    traces: Object.keys(colors).map((part) => ({
      type: "bar", orientation: "h", name: part, y: rows.map((_, i) => i), x: rows.map((row) => row[part]), marker: { color: colors[part] },
      text: names.map((name, i) => `${name}<br>${part}: ${short(rows[i][part])} s`), textposition: "none",
      hovertemplate: "%{text}<extra></extra>",
    })),
    look: {
      barmode: "stack", height: 70 + 34 * rows.length,
      hovermode: "closest", margin: { l: 10, r: 16, t: 12, b: 44 }, bargap: 0.35,
      xaxis: { title: { text: "seconds per rollout" }, rangemode: "tozero" },
      yaxis: { autorange: "reversed", tickvals: rows.map((_, i) => i), ticktext: names.map((name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name)), fixedrange: true },
    },
  };
}

function startCosts() {
  const element = document.getElementById("costs");
  if (element) whenNear(element, () => draw(element, costChart));
}
