// Figures as the service draws them, in the theme of the page.
"use strict";

const SETTINGS = {
  responsive: true,
  displaylogo: false,
  // On a phone it would cover the titles; the page has buttons of its own.
  displayModeBar: matchMedia("(max-width: 40rem)").matches ? false : "hover",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  // Without these two, plotly.js offers a button that uploads the figure to another host.
  showSendToCloud: false,
  plotlyServerURL: "",
};

const PLOTLY = document.currentScript.dataset.plotly;
let plotly = null;

/** Load plotly.js when a figure is first wanted: reading it takes a browser longer than all else of a page. */
function loadPlotly() {
  plotly ??= new Promise((done, fail) => {
    const script = element("script", { src: PLOTLY });
    script.addEventListener("load", () => done());
    script.addEventListener("error", () => { plotly = null; fail(new Error("plotly.js cannot be loaded.")); });
    document.head.append(script);
  });
  return plotly;
}

/** Where there is room for one column of the legend only, the figure grows, and what is drawn keeps its height. */
async function makeRoom(place, { height, meta }) {
  const shown = place.querySelector(".legend .bg")?.getBoundingClientRect().height ?? 0;
  const lacking = Math.round(shown - (meta?.legend_height ?? shown));
  if (lacking >= 20) await Plotly.relayout(place, { height: height + lacking });
}

/** Draw what an address of the API gives into a place; the latest request wins. Returns the figure, or null. */
async function drawFigure(place, address, { signal, prepare } = {}) {
  place.setAttribute("aria-busy", "true");
  try {
    const theme = isDark() ? "dark" : "light";
    const join = address.includes("?") ? "&" : "?";
    const [figure] = await Promise.all([ask(`${address}${join}theme=${theme}`, { signal }), loadPlotly()]);
    if (signal?.aborted) return null;
    // With a dragmode, plotly.js keeps a finger from moving the page: nobody would get past a tall figure.
    if (matchMedia("(pointer: coarse)").matches) figure.layout.dragmode = false;
    prepare?.(figure);
    place.querySelector(".room")?.remove();
    await Plotly.react(place, figure.data, figure.layout, SETTINGS);
    await makeRoom(place, figure.layout);
    Object.assign(place.dataset, { drawn: "true", theme, shows: (figure.layout.meta?.figures ?? []).join(" ") });
    place.removeAttribute("aria-busy");
    return figure;
  } catch (error) {
    if (error.name === "AbortError") return null;
    place.removeAttribute("aria-busy");
    if (!place.dataset.drawn) place.replaceChildren(element("p", { className: "quiet", textContent: `The figure cannot be drawn: ${error.message}` }));
    else say(`The figure cannot be drawn: ${error.message}`);
    place.dataset.drawn ||= "failed";
    return null;
  }
}

// A figure that was drawn for a screen is wider than paper, where nothing tells plotly.js to draw it anew.
const PAPER_WIDTH = 700;
const drawnFigures = () => document.querySelectorAll('.figure[data-drawn="true"]');
addEventListener("beforeprint", () => {
  for (const each of drawnFigures()) Plotly.relayout(each, { width: Math.min(each.clientWidth, PAPER_WIDTH) });
});
addEventListener("afterprint", () => {
  for (const each of drawnFigures()) Plotly.relayout(each, { width: null, autosize: true });
});

// Figures that stand for themselves are drawn when they come into view, and again in another theme.
const alone = [...document.querySelectorAll("[data-figure]")];
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    drawFigure(entry.target, entry.target.dataset.figure);
  }
}, { rootMargin: "400px" });
alone.forEach((each) => near.observe(each));
document.addEventListener("theme", () => {
  for (const each of alone) if (each.dataset.drawn === "true") drawFigure(each, each.dataset.figure);
});
