// Switches for methods, seeds and the theme; then everything starts.
function startSwitches() {
  each("input.method", (box) => box.addEventListener("change", () => {
    box.checked ? hidden.delete(box.dataset.method) : hidden.add(box.dataset.method);
    redraw();
  }));
  const seeds = document.getElementById("seeds");
  seeds.addEventListener("change", () => {
    showing.seeds = seeds.checked;
    redraw();
  });
}

function startTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  function show() {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`);
    redraw();
  }
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();
}

startTheme();
startSwitches();
startCharts();
startMaps();
startCosts();
