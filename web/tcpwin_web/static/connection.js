// The connection page: figures on one time axis; zooming fetches finer data, and the tables below follow the span.
"use strict";

const place = document.getElementById("figure");
const direction = document.getElementById("direction");
const panels = [...document.querySelectorAll('input[name="panel"]')];
// Nanoseconds since 1970 do not fit a number: spans are kept relative, in nanoseconds, to the connection's start.
const startNs = BigInt(place.dataset.start);
const lifeNs = Math.max(Number(BigInt(place.dataset.end) - startNs), 1);
const LEAST_NS = 1000;
const MOST_MARKS = 10;
const span = { from: 0, to: lifeNs };
let drawing = null;
// Selected frames with their times, marked in the figures and kept in the URL.
let marks = [];
const parts = [...document.querySelectorAll("[data-part]")];
const FIRST_TAB = "findings";
let tab = parts.find((each) => !each.hidden).dataset.part;
// Whether the next view is the first or comes from the history: it then replaces the entry instead of adding one.
let isRestored = true;
let shown = null;
// Incremented for each view: results of earlier requests are dropped.
let turns = 0;

const relative = (ns) => Number(BigInt(ns) - startNs);
const absolute = (ns) => startNs + BigInt(Math.round(ns));
const isWhole = () => span.from <= 0 && span.to >= lifeNs;
const defaults = () => panels.every((each) => each.checked === each.defaultChecked);
const spanQuery = () => (isWhole() ? "" : `start_ns=${absolute(span.from)}&end_ns=${absolute(span.to)}`);

function address() {
  const query = new URLSearchParams(spanQuery());
  if (direction.value !== direction.dataset.busier) query.set("direction", direction.value);
  if (!defaults()) for (const each of panels) if (each.checked) query.append("panel", each.value);
  for (const mark of marks) query.append("frame", mark.frame);
  if (tab !== FIRST_TAB) query.set("tab", tab);
  return query;
}

/** Give the view its URL and an entry in the history. */
function remember() {
  const query = address();
  const place = query.size ? `?${query}` : location.pathname;
  if (isRestored) history.replaceState(null, "", `${place}${location.hash}`);
  else if (String(query) !== shown) history.pushState(null, "", place);
  shown = String(query);
  isRestored = false;
}

const life = new Life(document.getElementById("life"), place, { lifeNs, leastNs: LEAST_NS, chosen: (from, to) => look(from, to) });

// ---- tabs ------------------------------------------------------------------------------------------------------

function openTab(name) {
  const found = parts.find((each) => each.dataset.part === name);
  if (!found) return;
  tab = name;
  for (const each of parts) {
    if (each === found) each.removeAttribute("hidden");
    else each.setAttribute("hidden", "until-found");
  }
  for (const link of document.querySelectorAll("[data-tab]")) {
    if (link.dataset.tab === name) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
/** Open the tab of the address's fragment, as old links have it. */
function openFragment() {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = found?.closest("[data-part]")?.dataset.part;
  if (!part || part === tab) return;
  openTab(part);
  found.scrollIntoView();
}
addEventListener("hashchange", openFragment);
// The browser found text in a hidden tab.
for (const each of parts) each.addEventListener("beforematch", () => { openTab(each.dataset.part); remember(); });

// ---- tables ----------------------------------------------------------------------------------------------------

const time = { name: "s", cell: (row) => secondsText(relative(row.time_ns)), isNumber: true };
const number = (name, field) => ({ name, cell: (row) => (row[field] === null || row[field] === undefined ? null : count(row[field])), isNumber: true });
const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
const words = (name) => name.replaceAll("_", " ");

function frameLink(frame) {
  if (!frame) return null;
  const link = element("a", { href: `?frame=${frame}`, textContent: count(frame), title: "Show this frame and its neighbours" });
  link.dataset.frame = frame;
  return link;
}
const frame = { name: "frame", cell: (row) => frameLink(row.frame), isNumber: true, isHead: true };

const msText = (ns) => (ns ?? null) === null ? null : (ns / 1e6).toLocaleString("en", { minimumFractionDigits: 3 });

// Sequence numbers relative to the first of each side, as Wireshark shows them.
const FIRST_ROWS = 20, SYN = 2;
const bases = {};
async function findBases() {
  const { segments: rows } = await ask(`${document.getElementById("segments").dataset.source}?limit=${FIRST_ROWS}`);
  for (const { direction: side, flags, seq, ack } of rows) {
    bases[side] ??= flags & SYN ? seq : seq - 1;
    if (ack) bases[side === "a" ? "b" : "a"] ??= ack - 1;
  }
}
const relativeTo = (base, value) => (base === undefined ? count(value) : element("span", { textContent: count((value - base) >>> 0), title: `absolute ${value}` }));
const otherSide = ({ direction: side }) => (side === "a" ? "b" : "a");

const segments = new PagedTable(document.getElementById("segments"), "segments", [
  frame,
  time,
  { name: "from", cell: (row) => row.direction },
  { name: "flags", cell: (row) => FLAGS.filter((_, bit) => (row.flags >> bit) & 1).join(" ") },
  { name: "seq (relative)", cell: (row) => relativeTo(bases[row.direction], row.seq), isNumber: true },
  { name: "ack (relative)", cell: (row) => (row.ack ? relativeTo(bases[otherSide(row)], row.ack) : 0), isNumber: true },
  number("data, B", "length"),
  number("window, B", "window"),
  number("in flight, B", "bytes_in_flight"),
  { name: "RTT, ms", cell: (row) => msText(row.rtt_ns), isNumber: true },
  { name: "events", cell: (row) => row.events.split("|").map(words).join(", ") },
]);
const evidence = JSON.parse(document.getElementById("events").dataset.evidence);
const evidenceColumn = ([field, heading, kind]) => kind === "frame"
  ? { name: heading, cell: (row) => frameLink(row[field]), isNumber: true }
  : { name: `${heading}, ms`, cell: (row) => msText(row[field]), isNumber: true };
const events = new PagedTable(document.getElementById("events"), "events", [
  frame,
  time,
  { name: "from", cell: (row) => row.direction },
  { name: "event", cell: (row) => row.names.map(words).join(", ") },
  { name: "cause", cell: (row) => (row.cause ? `${words(row.cause)}${row.confidence ? ` (${row.confidence})` : ""}` : null) },
  { name: "why", cell: (row) => row.reason, isWide: true },
  ...evidence.map(evidenceColumn),
]);
const within = (seen) => seen && (seen.least === seen.most ? count(seen.least) : `${count(seen.least)} to ${count(seen.most)}`);
const sampled = (name, field) => ({ name, cell: (row) => (row.sample[field] === undefined ? null : count(row.sample[field])), isNumber: true });
const snapshots = document.getElementById("snapshots") && new PagedTable(document.getElementById("snapshots"), "snapshots", [
  { ...time, isHead: true },
  { name: "of", cell: (row) => row.side },
  { name: "state", cell: (row) => row.sample.state ?? null },
  sampled("cwnd, segments", "cwnd_segments"),
  number("cwnd, B", "cwnd_bytes"),
  sampled("ssthresh", "ssthresh_segments"),
  { name: "srtt, ms", cell: (row) => msText(row.sample.rtt_ns), isNumber: true },
  { name: "in flight, B (packets)", cell: (row) => within(row.flight_bytes), isNumber: true },
  sampled("snd_wnd, B (ss)", "snd_wnd_bytes"),
  { name: "peer's window, B (packets)", cell: (row) => within(row.peer_window_bytes), isNumber: true },
  { name: "own window, B (packets)", cell: (row) => within(row.own_window_bytes), isNumber: true },
  sampled("unread, B", "recv_q_bytes"),
  sampled("not sent, B", "notsent_bytes"),
  sampled("rmem, B", "rmem_alloc_bytes"),
  sampled("rcvbuf, B", "rcvbuf_bytes"),
  { name: "differs from packets", cell: (row) => row.disagreements.map((each) => `${words(each.name)} ${count(each.kernel)}`).join(", ") || null },
]);

const based = findBases().catch(() => {});
async function tables() {
  await based;
  segments.show(spanQuery());
  events.show(spanQuery());
  snapshots?.show(spanQuery());
}

// ---- the figure ------------------------------------------------------------------------------------------------

async function draw() {
  drawing?.abort();
  drawing = new AbortController();
  const query = address();
  query.delete("frame");
  query.delete("tab");
  remember();
  const names = panels.filter((each) => each.checked).map((each) => each.value);
  place.hidden = !names.length;
  if (!names.length) return;
  const wasDrawn = place.dataset.drawn === "true";
  const figure = await drawFigure(place, `${place.dataset.source}?${query}`, {
    signal: drawing.signal,
    prepare: ({ layout }) => {
      if (!isWhole()) layout.xaxis.range = [span.from, span.to].map((each) => onAxis(each, layout));
      // The page has its own line through all panels.
      layout.xaxis.showspikes = false;
      plain = { shapes: layout.shapes ?? [], annotations: layout.annotations ?? [] };
      Object.assign(layout, withMarks(layout));
    },
  });
  if (!figure) return;
  lastDrawn = figure;
  exposeMarks();
  sumUp(figure);
  life.align();
  if (!wasDrawn) {
    place.on("plotly_relayout", zoomed);
    place.on("plotly_click", clicked);
  }
}

let lastDrawn = null;
// Shapes and annotations of the figure without the marks.
let plain = { shapes: [], annotations: [] };

/** Height of a label of the figure, in pixels. */
const LABEL_ROW = 18;
/** Add a line with the frame's number through all panels at each selected frame. */
function withMarks(layout) {
  const color = layout.font.color;
  const lines = marks.map(({ ns }) => ({ type: "line", xref: "x", yref: "paper", x0: onAxis(ns, layout), x1: onAxis(ns, layout), y0: 0, y1: 1, line: { color, width: 1.5, dash: "dash" } }));
  // Below the "when" label, and below each other: any could cover the next.
  const names = marks.map(({ frame, ns }, place) => ({ text: `frame ${count(frame)}`, xref: "x", yref: "paper", x: onAxis(ns, layout), y: 1, xanchor: ns > (span.from + span.to) / 2 ? "right" : "left", yanchor: "top", yshift: -LABEL_ROW * (place + 1), showarrow: false, bgcolor: layout.paper_bgcolor, font: { color, size: 11 } }));
  return { shapes: [...plain.shapes, ...lines], annotations: [...plain.annotations, ...names] };
}
function exposeMarks() {
  place.dataset.marked = marks.map(({ frame }) => frame).join(" ");
}

const ofSpan = document.getElementById("of-span");
let gains = null;
/** Return the what-if page's row of a lifted limit, loaded once: its gain, and its duration. */
async function gainOf(limit) {
  gains ??= fetch(ofSpan.dataset.whatif, { headers: { Accept: "text/html" } }).then((answer) => answer.text()).then((text) => new DOMParser().parseFromString(text, "text/html"));
  const cells = (await gains).querySelector(`a[href$="?lift=${limit}"]`)?.closest("tr").cells;
  return cells && { gain: cells[1].textContent, duration: cells[2].textContent };
}
/** Say what limited the span, for how long, and what lifting that limit would gain. */
async function sumUp(figure) {
  ofSpan.hidden = isWhole();
  if (isWhole()) return;
  const limits = limitsOf(place._fullData, ...[span.from, span.to].map((each) => onAxis(each, place.layout)));
  const [first, ...others] = limits;
  const share = ({ ms }) => `${spanText(ms)}, ${Math.round((1e8 * ms) / (span.to - span.from))} %`;
  const slice = element("a", { href: `${ofSpan.dataset.slice}&${spanQuery()}`, download: "", textContent: "Download this span (pcapng)" });
  const parts = first ? ["This span: ", element("strong", { textContent: first.words }), ` (${share(first)})${others.slice(0, 2).map((each) => `, ${each.words} (${share(each)})`).join("")}. `] : [];
  ofSpan.replaceChildren(...parts, slice);
  const gain = first && await gainOf(first.limit);
  if (!gain || figure !== lastDrawn) return;
  const link = element("a", { href: `${ofSpan.dataset.whatif}?lift=${first.limit}`, textContent: `Without ${first.words}` });
  ofSpan.replaceChildren(...parts, link, ` the whole connection would take ${gain.duration}: ${gain.gain}. `, slice);
}

/** Show the span as text, and its place within the connection's life. */
function showSpan() {
  document.getElementById("span").textContent = isWhole() ? "" : `${secondsText(span.from)} to ${secondsText(span.to)} s`;
  life.show(span);
}

// Draw only the last of several views in quick succession, as while a handle is dragged.
const CLOSE_MS = 400, SETTLING_MS = 150;
let settling = 0, looked = -CLOSE_MS;
function look(from, to, { isQuick = false } = {}) {
  const width = Math.min(Math.max(to - from, LEAST_NS), lifeNs);
  span.from = Math.min(Math.max(from, 0), lifeNs - width);
  span.to = span.from + width;
  showSpan();
  clearTimeout(settling);
  const now = performance.now();
  settling = setTimeout(redraw, isQuick || now - looked > CLOSE_MS ? 0 : SETTLING_MS);
  looked = now;
}
/** Draw the figure before requesting the tables: they would delay it. */
async function redraw() {
  const done = draw();
  const mine = drawing;
  await done;
  if (mine === drawing) tables();
}
const whole = () => look(0, lifeNs, { isQuick: true });

// The axis has seconds since the connection's start or, for hours and days, dates in UTC (milliseconds since 1970).
const onAxis = (ns, layout) => (layout.xaxis.type === "date" ? Number(startNs / 1000n) / 1e3 + ns / 1e6 : ns / 1e9);
function offAxis(value) {
  if (place.layout.xaxis.type !== "date") return value * 1e9;
  const [day, clock = "00:00"] = String(value).split(" ");
  const ms = typeof value === "number" ? value : Date.parse(`${day}T${clock}Z`);
  return Number(BigInt(Math.round(ms)) * 1000000n - startNs);
}

function zoomed(change) {
  if (change["xaxis.autorange"]) whole();
  else if ("xaxis.range[0]" in change) look(offAxis(change["xaxis.range[0]"]), offAxis(change["xaxis.range[1]"]));
  else if (change["xaxis.range"]) look(...change["xaxis.range"].map(offAxis));
}

/** Show the row of the clicked segment. */
function clicked({ points }) {
  for (const point of points) {
    const found = /^<b>frame ([\d,]+)/.exec(point.text ?? "");
    const custom = /frame %\{customdata/.test(point.data.hovertemplate ?? "") ? [point.customdata].flat()[0] : null;
    const number = found ? Number(found[1].replaceAll(",", "")) : custom;
    if (number) return showFrames([number], { isSpanKept: true, isFigureKept: true });
  }
}

/** Return a frame with its time; null, with a message, if it is not a segment of this connection. */
async function findFrame(frame) {
  try {
    const { segments: rows } = await ask(`${segments.place.dataset.source}?frame=${frame}&limit=1`);
    return { frame, ns: relative(rows[0].time_ns) };
  } catch (error) {
    say(error.message.replace(/^f/, "F"));
    return null;
  }
}

/** Show frames, the first in the table and all in the figures; zoom to them unless the span is kept. */
async function showFrames(numbers, { isSpanKept = false, isFigureKept = false } = {}) {
  const mine = ++turns;
  say("");
  const found = (await Promise.all(numbers.map(findFrame))).filter(Boolean);
  if (mine !== turns) return;
  if (!found.length) return look(span.from, span.to, { isQuick: true });
  marks = found;
  segments.marked = marks[0].frame;
  const rows = await segments.show(`${isSpanKept ? spanQuery() : ""}&frame=${marks[0].frame}`, null);
  if (mine !== turns) return;
  segments.query = isSpanKept ? spanQuery() : "";
  if (!isSpanKept) {
    const near = marks.length > 1 || !rows ? marks.map(({ ns }) => ns) : rows.segments.map((row) => relative(row.time_ns));
    const [least, most] = [Math.min(...near), Math.max(...near)];
    const margin = (most - least) * (marks.length > 1 ? 0.1 : 0.02) || 1e6;
    look(least - margin, most + margin, { isQuick: true });
    clearTimeout(settling);
  } else if (isFigureKept) {
    remember();
    await Plotly.relayout(place, withMarks(place.layout));
    return exposeMarks();
  }
  await draw();
  events.show(spanQuery());
  snapshots?.show(spanQuery());
}

new Instant(place, {
  timeOf: offAxis,
  frameAt: async (ns) => {
    try {
      const { segments: [row] } = await ask(`${segments.place.dataset.source}?start_ns=${absolute(ns)}&limit=1`);
      return row && `${count(row.frame)} at ${secondsText(relative(row.time_ns))} s, from ${row.direction}, ${count(row.length)} B${row.bytes_in_flight === null ? "" : `, captured flight ${prefixed(row.bytes_in_flight, "B")}`}`;
    } catch {
      return null;
    }
  },
});

const MOVES = {
  whole,
  in: () => look(span.from + (span.to - span.from) / 4, span.to - (span.to - span.from) / 4),
  out: () => look(span.from - (span.to - span.from) / 2, span.to + (span.to - span.from) / 2),
  left: () => look(span.from - (span.to - span.from) / 2, span.to - (span.to - span.from) / 2),
  right: () => look(span.from + (span.to - span.from) / 2, span.to + (span.to - span.from) / 2),
};
const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "whole" };
for (const button of document.querySelectorAll("button[data-move]")) button.addEventListener("click", () => MOVES[button.dataset.move]());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, .scroll, summary, [role=slider]")) return;
  const move = KEYS[event.key];
  if (!move) return;
  event.preventDefault();
  MOVES[move]();
});
// Links to spans and frames of this page do not load it again.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || link.pathname !== location.pathname || !link.search || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.dataset.tab) {
    openTab(link.dataset.tab);
    return remember();
  }
  const isFrame = Boolean(link.dataset.frame);
  const query = new URLSearchParams(link.search);
  query.set("tab", isFrame ? "segments" : tab);
  begin(query);
  document.getElementById(isFrame ? "segments-title" : "time").scrollIntoView({ block: isFrame ? "start" : "center" });
});
direction.addEventListener("change", () => { life.turn(direction.value); draw(); });
for (const each of panels) each.addEventListener("change", draw);
document.addEventListener("theme", () => { if (place.dataset.drawn) draw(); });

document.getElementById("to-frame").addEventListener("submit", (event) => {
  event.preventDefault();
  showFrames([Number(document.getElementById("frame-number").value)]);
});

function begin(query) {
  const at = (name, otherwise) => (/^-?\d{1,19}$/.test(query.get(name) ?? "") ? relative(query.get(name)) : otherwise);
  const side = query.get("direction");
  direction.value = ["a_to_b", "b_to_a"].includes(side) ? side : direction.dataset.busier;
  life.turn(direction.value);
  const chosen = query.getAll("panel");
  for (const each of panels) each.checked = chosen.length ? chosen.includes(each.value) : each.defaultChecked;
  const frames = query.getAll("frame").filter((each) => /^\d{1,12}$/.test(each)).slice(0, MOST_MARKS).map(Number);
  const isSpanKept = query.has("start_ns") || query.has("end_ns");
  openTab(query.get("tab") ?? (frames.length && !isSpanKept ? "segments" : FIRST_TAB));
  turns += 1;
  marks = [];
  segments.marked = null;
  look(at("start_ns", 0), at("end_ns", lifeNs), { isQuick: true });
  if (!frames.length) return;
  clearTimeout(settling);
  showFrames(frames, { isSpanKept });
}
addEventListener("popstate", () => {
  if (location.search === (shown ? `?${shown}` : "")) return;
  isRestored = true;
  begin(new URLSearchParams(location.search));
});
begin(new URLSearchParams(location.search));
openFragment();
