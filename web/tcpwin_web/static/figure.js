// Figures drawn from the service's JSON, in the page's theme.
"use strict";

const SETTINGS = {
  responsive: true,
  displaylogo: false,
  // On a phone it would cover the titles; the page has its own buttons.
  displayModeBar: matchMedia("(max-width: 40rem)").matches ? false : "hover",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  // Without these two, plotly.js offers a button that uploads the figure to another host.
  showSendToCloud: false,
  plotlyServerURL: "",
};

const PLOTLY = document.currentScript.dataset.plotly;
let plotly = null;

/** Load plotly.js with the first figure: it takes longer to parse than the rest of a page. */
function loadPlotly() {
  plotly ??= new Promise((done, fail) => {
    const script = element("script", { src: PLOTLY });
    script.addEventListener("load", () => done());
    script.addEventListener("error", () => { plotly = null; fail(new Error("plotly.js cannot be loaded.")); });
    document.head.append(script);
  });
  return plotly;
}

// Sentences under a title are wrapped for phones; LINE is the height of a line.
const WIDE = 640, LINE = 20;
// Width of a small letter, and of plotly's buttons next to the title.
const SMALL_LETTER = 6.2, BUTTONS = 130;

/** On a wide page, put the sentences under the title on one line if they fit, otherwise on one each, and give the freed height to the panels. */
function unwrap({ title, margin }, width) {
  if (width < WIDE || !title?.text) return;
  const lines = title.text.split("<br>").length;
  const text = title.text.replace(/<span[^>]*>.*?<\/span>/g, (each) => each.replaceAll("<br>", ""));
  const joined = text.replaceAll("</span><br><span", "</span> · <span");
  const isShort = joined.replace(/<[^>]*>/g, "").length * SMALL_LETTER < width - BUTTONS;
  title.text = isShort ? joined : text;
  margin.t -= LINE * (lines - title.text.split("<br>").length);
}

// Sizes of labels and legends as plotly.js lays them out, in pixels. If they exceed the margins, it draws every axis
// again, which doubles the time.
const BAND_LABELS = 101, LAST_LABEL = 20, TIME_AXIS = 52, LEGEND_ENTRY = 45, LEGEND_GAP = 5, LEGEND_EDGES = 10, LEGEND_ROW = 19;

const columnsOf = ({ entrywidth }, width) => Math.max(Math.floor((width + LEGEND_GAP) / (entrywidth + LEGEND_ENTRY)), 1);

/** Put the entries of all panels' legends below the figure where a panel is too narrow for its own. */
function gather({ data, layout }, width) {
  const own = Object.keys(layout).filter((name) => /^legend\d/.test(name));
  const needed = layout.meta?.legend_columns ?? 0;
  if (own.every((name) => columnsOf(layout[name], width) >= needed)) return;
  const seen = new Set();
  for (const each of data) {
    delete each.legend;
    each.showlegend = each.showlegend !== false && !seen.has(each.legendgroup);
    seen.add(each.legendgroup);
  }
  for (const each of titlesOf(layout)) each.yshift = 0;
}

/** Put the titles of panels close to their legends, which take fewer rows on a wide page. */
function lower({ data, layout }, width) {
  titlesOf(layout).forEach((title, place) => {
    const name = `legend${place + 2}`;
    const entries = data.filter((each) => each.showlegend && each.legend === name).length;
    if (title.yshift && entries) title.yshift = Math.ceil(entries / columnsOf(layout[name], width)) * LEGEND_ROW + LEGEND_GAP;
  });
}

/** Return the height of the legend below a figure at a plot width. */
function legendHeight({ data, layout }, width) {
  const entries = data.filter((each) => each.showlegend !== false && !each.legend).length;
  if (!entries) return 0;
  const columns = columnsOf(layout.legend, width);
  return LEGEND_EDGES + LEGEND_ROW * Math.ceil(entries / columns);
}

/**
 * Set the final margins in advance. If the legend fits only one column, the figure grows so that the plot keeps its
 * height.
 */
function foresee(figure, width) {
  const { layout } = figure;
  const { legend: box, margin, meta } = layout;
  if (!meta?.figures || box?.yref !== "container" || !box.entrywidth) return;
  margin.l = meta.figures.includes("budget") ? BAND_LABELS : margin.l;
  margin.r = LAST_LABEL;
  gather(figure, width - margin.l - margin.r);
  lower(figure, width - margin.l - margin.r);
  const legend = legendHeight(figure, width - margin.l - margin.r);
  margin.b = TIME_AXIS + legend;
  const lacking = legend - meta.legend_height;
  if (lacking >= LINE) {
    layout.height += lacking;
    meta.legend_height += lacking;
  }
  if (width < WIDE) for (const each of layout.annotations ?? []) if (isTitle(each)) Object.assign(each, titleShift(margin.l));
}

// On a phone, panel titles begin at the page's edge: next to the axis their ends would be cut off, and they would cover
// its topmost label.
const isTitle = ({ yref, yanchor, xanchor }) => yref === "paper" && yanchor === "bottom" && xanchor === "left";
const titlesOf = ({ annotations = [] }) => annotations.filter(isTitle);
const titleShift = (left) => ({ xshift: 12 - left, yshift: 5 });

/** Correct the layout if the legend has more rows, or the labels are wider, than expected. */
async function makeRoom(place, { height, meta, annotations }) {
  const shown = meta?.legend_columns ? 0 : place.querySelector(".legend .bg")?.getBoundingClientRect().height ?? 0;
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

/** Size of each drawn figure: plotly.js forgets the height when the window's width changes. */
const drawnAs = new Map();
/** Source and `prepare` function of the figure last requested for each place. */
const requested = new Map();

const inTheme = (address, theme) => `${address}${address.includes("?") ? "&" : "?"}theme=${theme}`;

/** Draw a figure from an API URL into a place; the latest request wins. Return the figure, or null. */
async function drawFigure(place, address, { signal, prepare } = {}) {
  place.setAttribute("aria-busy", "true");
  requested.set(place, { address, prepare });
  try {
    const theme = isDark() ? "dark" : "light";
    const [figure] = await Promise.all([ask(inTheme(address, theme), { signal }), loadPlotly()]);
    if (signal?.aborted) return null;
    // With a dragmode, plotly.js captures touch scrolling: nobody would get past a tall figure.
    if (matchMedia("(pointer: coarse)").matches) figure.layout.dragmode = false;
    prepare?.(figure);
    unwrap(figure.layout, place.clientWidth);
    foresee(figure, place.clientWidth);
    // A page that gets shorter while a figure is drawn would lose its place.
    place.style.minHeight = `${place.offsetHeight}px`;
    place.querySelector(".room")?.remove();
    await Plotly.react(place, figure.data, figure.layout, SETTINGS);
    await followTicks(place);
    await makeRoom(place, figure.layout);
    place.style.minHeight = "";
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

// A figure drawn for the screen is wider than paper, may have the dark theme, and is missing if nobody scrolled to it.
// Browsers do not wait for promises before printing: missing figures are fetched synchronously.
const PAPER_WIDTH = 700;
// A figure taller than a page would be split: shrink it, as long as it stays readable.
const PAPER_HEIGHT = 900, LEAST_ZOOM = 0.55;

/** Zoom a place so that its figure of this height fits on paper; return its width in zoomed pixels. */
function fitOnPaper(place, height, room = PAPER_WIDTH) {
  const zoom = Math.min(Math.max(PAPER_HEIGHT / height, LEAST_ZOOM), 1);
  place.style.zoom = zoom;
  return Math.min(room, PAPER_WIDTH) / zoom;
}

function drawOnPaper(place) {
  const { address, prepare } = requested.get(place) ?? { address: place.dataset.figure };
  if (!address || !self.Plotly) return;
  const request = new XMLHttpRequest();
  request.open("GET", inTheme(address, "light"), false);
  request.send();
  if (request.status !== 200) return;
  const figure = JSON.parse(request.responseText);
  prepare?.(figure);
  unwrap(figure.layout, PAPER_WIDTH);
  foresee(figure, PAPER_WIDTH);
  place.querySelector(".room")?.remove();
  Plotly.react(place, figure.data, { ...figure.layout, width: fitOnPaper(place, figure.layout.height) }, SETTINGS);
  followTicks(place);
  Object.assign(place.dataset, { drawn: "true", theme: "paper" });
  near.unobserve(place);
}

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll(".figure")) {
    // On paper, the legends of several panels do not fit.
    if (each.dataset.drawn === "true" && each.dataset.theme === "light" && !each.layout.meta?.legend_columns) {
      const { height } = drawnAs.get(each);
      Plotly.relayout(each, { width: fitOnPaper(each, height, each.clientWidth), height });
    } else drawOnPaper(each);
  }
});
addEventListener("afterprint", () => {
  for (const each of document.querySelectorAll('.figure[data-drawn="true"]')) {
    const { address, prepare } = requested.get(each) ?? { address: each.dataset.figure };
    each.style.zoom = "";
    if (each.dataset.theme === "paper") drawFigure(each, address, { prepare }).then(() => Plotly.relayout(each, { autosize: true }));
    else Plotly.relayout(each, { width: null, autosize: true, height: drawnAs.get(each).height });
  }
});
// plotly.js follows the window's width, but keeps the margins set for the old one.
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    if (matchMedia("print").matches) return;
    for (const [place, { width }] of drawnAs) {
      const { address, prepare } = requested.get(place);
      if (place.clientWidth && place.clientWidth !== width) drawFigure(place, address, { prepare });
    }
  }, 300);
});
// Printing would not wait for plotly.js if it is not loaded yet; the key's handler can.
addEventListener("keydown", (event) => {
  if (event.key !== "p" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  const lacking = alone.filter((each) => each.dataset.drawn !== "true");
  if (!lacking.length) return;
  event.preventDefault();
  Promise.all(lacking.map((each) => drawFigure(each, each.dataset.figure))).finally(() => print());
});

// Standalone figures are drawn when they come into view, and again when the theme changes.
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
