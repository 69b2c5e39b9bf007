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

// Sentences under a title are wrapped for a phone; a line of them is so high.
const WIDE = 640, LINE = 20;

/** Where a sentence under the title has room, it is one line, and the panels have the others' room. */
function unwrap({ title, margin }, width) {
  if (width < WIDE || !title?.text) return;
  const text = title.text.replace(/<span[^>]*>.*?<\/span>/g, (each) => each.replaceAll("<br>", ""));
  margin.t -= LINE * (title.text.split("<br>").length - text.split("<br>").length);
  title.text = text;
}

// What plotly.js makes of the service's fonts and legends, in pixels. Where labels or the legend turn out to need more
// than the margins have, it draws every axis once more: half of its time.
const BAND_LABELS = 101, LAST_LABEL = 20, TIME_AXIS = 52, LEGEND_ENTRY = 45, LEGEND_GAP = 5, LEGEND_EDGES = 10, LEGEND_ROW = 19;

/** The height of a legend, at a width of the plot. */
function legendHeight({ data, layout }, width) {
  const entries = data.filter((each) => each.showlegend !== false).length;
  const columns = Math.max(Math.floor((width + LEGEND_GAP) / (layout.legend.entrywidth + LEGEND_ENTRY)), 1);
  return LEGEND_EDGES + LEGEND_ROW * Math.ceil(entries / columns);
}

/**
 * Margins as they will be. Where there is room for one column of the legend only, the figure grows, and what is drawn
 * keeps its height.
 */
function foresee(figure, width) {
  const { layout } = figure;
  const { legend: box, margin, meta } = layout;
  if (!meta?.figures || box?.yref !== "container" || !box.entrywidth) return;
  margin.l = meta.figures.includes("budget") ? BAND_LABELS : margin.l;
  margin.r = LAST_LABEL;
  const legend = legendHeight(figure, width - margin.l - margin.r);
  margin.b = TIME_AXIS + legend;
  const lacking = legend - meta.legend_height;
  if (lacking >= LINE) {
    layout.height += lacking;
    meta.legend_height += lacking;
  }
  if (width < WIDE) for (const each of layout.annotations ?? []) if (isTitle(each)) Object.assign(each, titleShift(margin.l));
}

// On a phone titles of panels begin at the edge: beside the axis what stands behind them would be cut; and the uppermost
// label of the axis is there.
const isTitle = ({ yref, yanchor, xanchor }) => yref === "paper" && yanchor === "bottom" && xanchor === "left";
const titleShift = (left) => ({ xshift: 12 - left, yshift: 5 });

/** What was not foreseen: a legend of more rows, titles beside wider labels. */
async function makeRoom(place, { height, meta, annotations }) {
  const shown = place.querySelector(".legend .bg")?.getBoundingClientRect().height ?? 0;
  const lacking = Math.round(shown - (meta?.legend_height ?? shown));
  const changed = lacking >= LINE ? { height: height + lacking } : {};
  if (place.clientWidth < WIDE) {
    const shift = titleShift(place._fullLayout._size.l);
    annotations?.forEach((each, number) => {
      if (!isTitle(each) || each.xshift === shift.xshift) return;
      for (const [name, value] of Object.entries(shift)) changed[`annotations[${number}].${name}`] = value;
    });
  }
  if (Object.keys(changed).length) await Plotly.relayout(place, changed);
}

/** How high and wide each figure was drawn: plotly.js forgets the height where a window's width changes. */
const drawnAs = new Map();
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
    unwrap(figure.layout, place.clientWidth);
    foresee(figure, place.clientWidth);
    place.querySelector(".room")?.remove();
    await Plotly.react(place, figure.data, figure.layout, SETTINGS);
    await makeRoom(place, figure.layout);
    drawnAs.set(place, { height: place.layout.height, width: place.clientWidth });
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
// One that is higher than a page would be cut between two: it is drawn smaller, as long as that can be read.
const PAPER_HEIGHT = 900, LEAST_ZOOM = 0.55;

/** Make a place as small as its figure of this height has to be; returns its width by its own measure. */
function fitOnPaper(place, height, room = PAPER_WIDTH) {
  const zoom = Math.min(Math.max(PAPER_HEIGHT / height, LEAST_ZOOM), 1);
  place.style.zoom = zoom;
  return Math.min(room, PAPER_WIDTH) / zoom;
}

function drawOnPaper(place) {
  const { address, prepare } = asked.get(place) ?? { address: place.dataset.figure };
  if (!address || !self.Plotly) return;
  const request = new XMLHttpRequest();
  request.open("GET", inTheme(address, "light"), false);
  request.send();
  if (request.status !== 200) return;
  const figure = JSON.parse(request.responseText);
  prepare?.(figure);
  unwrap(figure.layout, PAPER_WIDTH);
  place.querySelector(".room")?.remove();
  Plotly.react(place, figure.data, { ...figure.layout, width: fitOnPaper(place, figure.layout.height) }, SETTINGS);
  Object.assign(place.dataset, { drawn: "true", theme: "paper" });
  near.unobserve(place);
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll(".figure")) {
    if (each.dataset.drawn === "true" && each.dataset.theme === "light") {
      const { height } = drawnAs.get(each);
      Plotly.relayout(each, { width: fitOnPaper(each, height, each.clientWidth), height });
    } else drawOnPaper(each);
  }
});
addEventListener("afterprint", () => {
  for (const each of document.querySelectorAll('.figure[data-drawn="true"]')) {
    const { address, prepare } = asked.get(each) ?? { address: each.dataset.figure };
    each.style.zoom = "";
    if (each.dataset.theme === "paper") drawFigure(each, address, { prepare }).then(() => Plotly.relayout(each, { autosize: true }));
    else Plotly.relayout(each, { width: null, autosize: true, height: drawnAs.get(each).height });
  }
});
// plotly.js follows a window's width, and keeps margins that were foreseen for another.
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    if (matchMedia("print").matches) return;
    for (const [place, { width }] of drawnAs) {
      const { address, prepare } = asked.get(place);
      if (place.clientWidth && place.clientWidth !== width) drawFigure(place, address, { prepare });
    }
  }, 300);
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
