// What all parts of the page share: the data, the colours of the theme, and ways to write numbers.
const data = JSON.parse(document.getElementById("report-data").textContent);
const hidden = new Set(); // methods that are switched off
const showing = { seeds: false };
const drawn = new Map(); // element -> function that draws it again

// A finger that moves over a chart scrolls the page; a mouse zooms.
const touch = matchMedia("(pointer: coarse)").matches;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const each = (selector, act) => document.querySelectorAll(selector).forEach(act);

// Plotly reads a few tags in texts: names of runs must not be read as such.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "unknown";
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

function faint(color, share) {
  const part = (from) => parseInt(color.slice(from, from + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${share})`;
}

function layout(more) {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true,
    font: { color: css("--text"), size: 12, family: "system-ui, -apple-system, Segoe UI, sans-serif" },
    hoverlabel: { bgcolor: css("--back"), bordercolor: css("--line"), font: { color: css("--text") }, namelength: -1 },
    margin: { l: 48, r: 12, t: 10, b: 40 },
    dragmode: touch ? false : "zoom",
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

const options = {
  responsive: true, displaylogo: false, showTips: false, scrollZoom: false, displayModeBar: touch ? false : "hover",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};

function draw(element, make) {
  const again = () => {
    const { traces, look } = make();
    Plotly.react(element, traces, layout(look), options);
  };
  drawn.set(element, again);
  again();
}

// Charts are drawn when they come near the screen: a page with many tasks opens at once and answers at once.
const NEAR = 500; // pixels
const waiting = new Map(); // element -> its observer

function whenNear(element, act) {
  if (waiting.has(element)) waiting.get(element).disconnect();
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    waiting.delete(element);
    act();
  }, { rootMargin: `${NEAR}px` });
  waiting.set(element, watch);
  watch.observe(element);
}

function near(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return top < innerHeight + NEAR && bottom > -NEAR;
}

const redraw = () => drawn.forEach((again, element) => (near(element) ? again() : whenNear(element, again)));
