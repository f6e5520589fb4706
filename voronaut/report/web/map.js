// Maps of the clusters: two runs beside each other, one slider over training for both.
const FINE = 65535; // numbers come as uint16

function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 2 }, (_, i) => view.getUint16(2 * i, true) / FINE);
}

function points(text, map) {
  const flat = unpack(text);
  const axis = (which) => flat.filter((_, i) => i % 2 === which).map((part) => map.low[which] + part * (map.high[which] - map.low[which]));
  return { x: axis(0), y: axis(1) };
}

function frameAt(map, steps) {
  let chosen = map.frames[0];
  for (const frame of map.frames) if (frame.steps <= steps) chosen = frame;
  return chosen;
}

function stateDots(map, frame) {
  return { ...points(frame.states, map), mode: "markers", hoverinfo: "skip", marker: { size: 3.5, color: css("--state"), opacity: 0.7 } };
}

// The end of the colour scale is one for all frames of a map, and no lower than twice an even share.
function busiest(map) {
  if (map.busiest) return map.busiest;
  const often = map.frames.flatMap((frame) => unpack(frame.visits).map((part, _, all) => part * all.length)).sort((a, b) => a - b);
  map.busiest = Math.max(2, often[Math.floor(0.98 * (often.length - 1))] || 0);
  return map.busiest;
}

function centerDots(map, frame) {
  const mass = unpack(frame.mass);
  const visits = unpack(frame.visits);
  const even = mass.length;
  const at = points(frame.centers, map);
  const text = mass.map((part, i) => `center ${i}<br>mass ${short(part * 100)} %<br>visits ${short(visits[i] * even)} × even share`);
  const these = (wanted) => {
    const own = (values) => values.filter((_, i) => mass[i] > 0 === wanted);
    return { x: own(at.x), y: own(at.y), text: own(text), mode: "markers", hovertemplate: "%{text}<extra></extra>", own };
  };
  const { own, ...full } = these(true);
  const { own: _, ...empty } = these(false);
  const cross = { ...empty, marker: { symbol: "x", size: 7, color: css("--warn"), opacity: 0.8 } };
  const circle = {
    ...full,
    marker: {
      size: own(mass).map((part) => Math.min(40, 3 + 8 * Math.sqrt(part * even))),
      color: own(visits).map((part) => part * even), cmin: 0, cmax: busiest(map), colorscale: "Viridis", opacity: 0.85,
      line: { width: 0.7, color: css("--edge") }, showscale: true,
      colorbar: { title: { text: "visits / even share", side: "right" }, thickness: 10, len: 0.9, outlinewidth: 0 },
    },
  };
  return [circle, cross];
}

function mapChart(map, frame) {
  const range = (which) => [map.low[which], map.high[which]];
  const centers = frame.centers.length ? centerDots(map, frame) : [];
  return {
    traces: [stateDots(map, frame), ...centers],
    look: {
      hovermode: "closest", margin: { l: 48, r: 8, t: 10, b: 44 }, dragmode: false,
      xaxis: { title: { text: map.axes[0], standoff: 6 }, range: range(0), zeroline: false },
      yaxis: { title: { text: map.axes[1], standoff: 6 }, range: range(1), zeroline: false },
    },
  };
}

function describe(map, frame) {
  if (!frame.centers.length) return "This bonus has no clusters: the states of the rollout alone.";
  const mass = unpack(frame.mass);
  const empty = mass.filter((part) => part === 0).length;
  return `Rollout ${frame.rollout}: ${mass.length} centers, ${empty} of them without a state.`;
}

function fill(select, chosen) {
  const groups = new Map();
  data.maps.forEach((map, index) => {
    if (!groups.has(map.task)) {
      const group = document.createElement("optgroup");
      group.label = map.task;
      groups.set(map.task, select.appendChild(group));
    }
    const option = document.createElement("option");
    option.value = index;
    option.textContent = `${map.method}, seed ${map.seed}`;
    groups.get(map.task).appendChild(option);
  });
  select.value = chosen;
}

// The second map shows another method on the same task where there is one: best one without clusters.
function partner(first) {
  const rating = (map) => (map.task === first.task ? 4 : 0) + (map.method !== first.method ? 2 : 0) + (map.frames[0].centers ? 0 : 1);
  const others = data.maps.filter((map) => map !== first);
  return others.reduce((best, map) => (rating(map) > rating(best) ? map : best), others[0]);
}

function startMaps() {
  const slider = document.getElementById("time");
  if (!slider) return;
  const views = [...document.querySelectorAll(".map")].filter((figure) => !figure.hidden);
  const first = data.maps.find((map) => map.frames[0].centers) || data.maps[0];
  const start = [first, partner(first)];
  views.forEach((view, i) => fill(view.querySelector("select"), data.maps.indexOf(start[i])));
  const chosen = (view) => data.maps[view.querySelector("select").value];
  const moments = () => [...new Set(views.flatMap((view) => chosen(view).frames.map((frame) => frame.steps)))].sort((a, b) => a - b);

  function show() {
    const steps = moments()[slider.value];
    const words = `${steps.toLocaleString("en")} steps`;
    document.getElementById("moment").textContent = words;
    slider.setAttribute("aria-valuetext", words);
    views.forEach((view) => {
      const frame = frameAt(chosen(view), steps);
      view.querySelector(".readout").textContent = describe(chosen(view), frame);
      const element = view.querySelector(".chart");
      if (drawn.has(element)) drawn.get(element)();
    });
  }
  function choose() {
    slider.max = moments().length - 1;
    slider.value = slider.max;
    show();
  }
  views.forEach((view) => {
    const element = view.querySelector(".chart");
    const make = () => mapChart(chosen(view), frameAt(chosen(view), moments()[slider.value]));
    whenNear(element, () => draw(element, make));
    view.querySelector("select").addEventListener("change", choose);
  });
  slider.addEventListener("input", show);
  startPlaying(slider, show);
  choose();
}

function startPlaying(slider, show) {
  const button = document.getElementById("play");
  let timer = null;
  function stop() {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  }
  function next() {
    if (Number(slider.value) >= Number(slider.max)) return stop();
    slider.value = Number(slider.value) + 1;
    show();
  }
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) >= Number(slider.max)) slider.value = 0;
    show();
    timer = setInterval(next, 350);
    button.textContent = "Stop";
  });
  slider.addEventListener("pointerdown", stop);
}
