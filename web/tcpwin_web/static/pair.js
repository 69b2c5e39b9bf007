// The page of both ends: the ladder of the selected connection; zooming fetches the packets of the span.
"use strict";

const place = document.getElementById("figure");
const LEAST_S = 1e-6;
// The whole connection and the visible span, in seconds since its first packet.
let whole = null;
let span = null;
let losses = [];
let originNs = 0n;
let drawing = null;
let settling = 0;

const absolute = (seconds) => originNs + BigInt(Math.round(seconds * 1e9));
const isWhole = () => span.from <= whole.from && span.to >= whole.to;

async function draw() {
  drawing?.abort();
  drawing = new AbortController();
  const isFirst = !whole;
  const query = isFirst ? "" : `&start_ns=${absolute(span.from)}&end_ns=${absolute(span.to)}`;
  const figure = await drawFigure(place, `${place.dataset.source}?${place.dataset.query}${query}`, {
    signal: drawing.signal,
    prepare: ({ layout }) => { if (!isFirst) layout.xaxis.range = [span.from, span.to]; },
  });
  if (!figure || !isFirst) return;
  const { origin_ns: origin, life_s: life, losses_s: lost } = figure.layout.meta;
  originNs = BigInt(origin);
  whole = { from: -life / 50, to: life * 1.02 };
  const [from, to] = figure.layout.xaxis.range;
  span = { from, to };
  losses = lost;
  document.querySelector(".losses").hidden = !losses.length;
  place.on("plotly_relayout", zoomed);
  showSpan();
}

function showSpan() {
  document.getElementById("span").textContent = isWhole() ? "" : `${secondsText(span.from * 1e9)} to ${secondsText(span.to * 1e9)} s`;
}

function look(from, to) {
  const width = Math.min(Math.max(to - from, LEAST_S), whole.to - whole.from);
  span.from = Math.min(Math.max(from, whole.from), whole.to - width);
  span.to = span.from + width;
  showSpan();
  clearTimeout(settling);
  settling = setTimeout(draw, 150);
}

function zoomed(change) {
  if (change["xaxis.autorange"]) look(whole.from, whole.to);
  else if ("xaxis.range[0]" in change) look(Number(change["xaxis.range[0]"]), Number(change["xaxis.range[1]"]));
  else if (change["xaxis.range"]) look(...change["xaxis.range"].map(Number));
}

/** Centre the nearest loss before or after the middle of the visible span. */
function step(isAfter) {
  const middle = (span.from + span.to) / 2;
  const width = Math.min(span.to - span.from, (whole.to - whole.from) / 4);
  const near = width / 1000;
  const found = isAfter ? losses.find((each) => each > middle + near) : losses.findLast((each) => each < middle - near);
  if (found !== undefined) look(found - width / 2, found + width / 2);
}

const MOVES = {
  whole: () => look(whole.from, whole.to),
  in: () => look(span.from + (span.to - span.from) / 4, span.to - (span.to - span.from) / 4),
  out: () => look(span.from - (span.to - span.from) / 2, span.to + (span.to - span.from) / 2),
  left: () => look(span.from - (span.to - span.from) / 2, span.to - (span.to - span.from) / 2),
  right: () => look(span.from + (span.to - span.from) / 2, span.to + (span.to - span.from) / 2),
  before: () => step(false),
  after: () => step(true),
};
const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "whole" };
if (place) {
  for (const button of document.querySelectorAll("button[data-move]")) button.addEventListener("click", () => { if (whole) MOVES[button.dataset.move](); });
  document.addEventListener("keydown", (event) => {
    if (!whole || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, .scroll, summary")) return;
    const move = KEYS[event.key];
    if (!move) return;
    event.preventDefault();
    MOVES[move]();
  });
  document.addEventListener("theme", draw);
  draw();
}
