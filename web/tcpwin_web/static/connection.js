// The connection page's figure: zooming fetches finer data of the span; few segments are listed below it.
"use strict";

// Without these two, plotly.js offers a button that uploads the figure to another host.
const stayHere = { showSendToCloud: false, plotlyServerURL: "" };
const LISTED = 200;
const COLUMNS = ["frame", "time_ns", "direction", "flags", "seq", "ack", "length", "window", "bytes_in_flight", "rtt_ns", "events"];

const place = document.getElementById("figure");
const direction = document.getElementById("direction");
const segments = document.getElementById("segments");
// Nanoseconds since 1970 do not fit a number: spans are kept relative, in nanoseconds, to the connection's start.
const startNs = BigInt(place.dataset.start);
const lifeNs = Number(BigInt(place.dataset.end) - startNs);
let latest = 0;

function query(from, to) {
  return `direction=${direction.value}&start_ns=${startNs + BigInt(Math.floor(from))}&end_ns=${startNs + BigInt(Math.ceil(to))}`;
}

async function draw(from, to) {
  const turn = ++latest;
  try {
    const span = query(from, to);
    const [figure, rows] = await Promise.all([
      ask(`${place.dataset.source}/figure?${span}&points=1000`),
      ask(`${place.dataset.source}/segments?${span}&limit=${LISTED}`).catch(() => ({ total: Infinity, segments: [] })),
    ]);
    if (turn !== latest) return;
    figure.layout.xaxis.range = [from / 1e9, to / 1e9];
    if (!place.dataset.drawn) place.textContent = "";
    await Plotly.react(place, figure.data, figure.layout, { responsive: true, displaylogo: false, ...stayHere });
    if (!place.dataset.drawn) place.on("plotly_relayout", zoomed);
    place.dataset.drawn = "true";
    list(rows);
    history.replaceState(null, "", from === 0 && to === lifeNs ? location.pathname : `?${span}`);
  } catch (error) {
    say(`The figure cannot be drawn: ${error.message}`);
  }
}

function zoomed(change) {
  if (change["xaxis.autorange"]) draw(0, lifeNs);
  else if ("xaxis.range[0]" in change) draw(Math.max(change["xaxis.range[0]"] * 1e9, 0), Math.min(change["xaxis.range[1]"] * 1e9, lifeNs));
}

function list(rows) {
  if (rows.total > LISTED) {
    segments.textContent = Number.isFinite(rows.total)
      ? `${rows.total.toLocaleString()} segments in this span; zoom in until there are ${LISTED} or fewer.`
      : "This connection has too many segments to list.";
    return;
  }
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const name of COLUMNS) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name.replaceAll("_", " ");
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows.segments) {
    const line = body.insertRow();
    for (const name of COLUMNS) line.insertCell().textContent = row[name] ?? "";
  }
  segments.replaceChildren(table);
}

function begin() {
  const asked = new URLSearchParams(location.search);
  if (asked.get("direction")) direction.value = asked.get("direction");
  const at = (name, otherwise) => (/^-?\d+$/.test(asked.get(name) ?? "") ? Number(BigInt(asked.get(name)) - startNs) : otherwise);
  const from = Math.min(Math.max(at("start_ns", 0), 0), lifeNs);
  draw(from, Math.max(Math.min(at("end_ns", lifeNs), lifeNs), from));
}

direction.addEventListener("change", () => draw(0, lifeNs));
document.getElementById("whole").addEventListener("click", () => draw(0, lifeNs));
begin();
