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

/** Of each place: the address of what was last drawn there, and what is done to it before. */
const asked = new Map();

const inTheme = (address, theme) => `${address}${address.includes("?") ? "&" : "?"}theme=${theme}`;

/** Draw what an address of the API gives into a place; the latest request wins. Returns the figure, or null. */
async function drawFigure(place, address, { signal, prepare } = {}) {
  place.setAttribute("aria-busy", "true");
  asked.set(place, { address, prepare });
  try {
    const theme = isDark() ? "dark" : "light";
    const [figure] = await Promise.all([ask(inTheme(address, theme), { signal }), loadPlotly()]);
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

// A figure that was drawn for a screen is wider than paper, in a dark theme light on white, and not there at all where
// nobody scrolled to it. A browser that prints waits for no promise: what is lacking is asked for while it waits.
const PAPER_WIDTH = 700;

function drawOnPaper(place) {
  const { address, prepare } = asked.get(place) ?? { address: place.dataset.figure };
  if (!address || !self.Plotly) return;
  const request = new XMLHttpRequest();
  request.open("GET", inTheme(address, "light"), false);
  request.send();
  if (request.status !== 200) return;
  const figure = JSON.parse(request.responseText);
  prepare?.(figure);
  place.querySelector(".room")?.remove();
  Plotly.react(place, figure.data, { ...figure.layout, width: PAPER_WIDTH }, SETTINGS);
  Object.assign(place.dataset, { drawn: "true", theme: "paper" });
  near.unobserve(place);
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll(".figure")) {
    if (each.dataset.drawn === "true" && each.dataset.theme === "light") Plotly.relayout(each, { width: Math.min(each.clientWidth, PAPER_WIDTH) });
    else drawOnPaper(each);
  }
});
addEventListener("afterprint", () => {
  for (const each of document.querySelectorAll('.figure[data-drawn="true"]')) {
    const { address, prepare } = asked.get(each) ?? { address: each.dataset.figure };
    if (each.dataset.theme === "paper") drawFigure(each, address, { prepare }).then(() => Plotly.relayout(each, { autosize: true }));
    else Plotly.relayout(each, { width: null, autosize: true });
  }
});
// Where plotly.js was never wanted it is not there, and printing would not wait for it: the key can.
addEventListener("keydown", (event) => {
  if (event.key !== "p" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  const lacking = alone.filter((each) => each.dataset.drawn !== "true");
  if (!lacking.length) return;
  event.preventDefault();
  Promise.all(lacking.map((each) => drawFigure(each, each.dataset.figure))).finally(() => print());
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
