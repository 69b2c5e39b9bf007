// Show in one label what the figures have at the pointer's time, with a line through all panels; sum up a span.
"use strict";

const FRAME_DELAY_MS = 150;
const NEAR_PX = 5;

/** Return the last place with a value of at most `at` in ascending numbers; -1 if there is none. */
function placeOf(values, at) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const three = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
/** Format a number with a prefix, such as 62.8 kB. */
function prefixed(value, unit) {
  const power = value >= 1e9 ? 3 : value >= 1e6 ? 2 : value >= 1e3 ? 1 : 0;
  return `${three(value / 1000 ** power)} ${["", "k", "M", "G"][power]}${unit}`;
}
function spanText(ms) {
  return ms >= 1000 ? `${three(ms / 1000)} s` : ms >= 1 ? `${three(ms)} ms` : `${three(ms * 1000)} µs`;
}
const valueText = (value, template) => (/bit\/s/.test(template) ? prefixed(value, "bit/s") : /ms/.test(template) ? `${three(value)} ms` : prefixed(value, "B"));
const plainText = (markup) => markup.replace(/<br>/g, ", ").replace(/<[^>]*>/g, "");
const isLimit = (trace) => Boolean(trace.meta?.limit);

/** Return the limits between two places on the axis, with their time in ms, the longest first. */
function limitsOf(traces, from, to) {
  const found = new Map();
  for (const { meta, x, width, base, customdata } of traces.filter(isLimit)) {
    for (let i = 0; i < x.length; i++) {
      // The upper band is the sender's of the data shown.
      if (base[i] < 1 || x[i] >= to || x[i] + width[i] <= from) continue;
      const share = (Math.min(to, x[i] + width[i]) - Math.max(from, x[i])) / width[i];
      const sum = found.get(meta.limit) ?? { ...meta, ms: 0 };
      sum.ms += share * customdata[i];
      found.set(meta.limit, sum);
    }
  }
  return [...found.values()].sort((one, other) => other.ms - one.ms);
}

class Instant {
  /** `timeOf` returns the nanoseconds of a value of the axis, `frameAt` the first segment at or after a time. */
  constructor(figure, { timeOf, frameAt }) {
    Object.assign(this, { figure, timeOf, frameAt, asked: 0 });
    this.line = element("div", { className: "instant-line", hidden: true });
    this.label = element("dl", { className: "instant", hidden: true });
    figure.after(this.line, this.label);
    figure.addEventListener("pointermove", (event) => this.show(event));
    for (const kind of ["pointerleave", "pointerdown"]) figure.addEventListener(kind, () => this.hide());
  }

  hide() {
    this.line.hidden = this.label.hidden = true;
    clearTimeout(this.asked);
  }

  show(event) {
    const { xaxis, _size: size } = this.figure._fullLayout ?? {};
    const box = this.figure.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (!xaxis?.p2d || event.buttons || x < size.l || x > size.l + size.w || y < size.t || y > size.t + size.h) return this.hide();
    const place = xaxis.p2d(x - size.l);
    const ns = this.timeOf(place);
    const at = xaxis.type === "date" ? xaxis.d2c(place) : place;
    const rows = [["time", `${secondsText(ns)} s`], ...this.readings(at, (NEAR_PX / size.w) * (xaxis.p2c(size.w) - xaxis.p2c(0)))];
    this.fill(rows);
    const { offsetLeft: left, offsetTop: top } = this.figure;
    Object.assign(this.line.style, { left: `${left + x}px`, top: `${top + size.t}px`, height: `${size.h}px` });
    this.line.hidden = this.label.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.label;
    const isLeft = x + width + 16 > size.l + size.w && x > width + 16;
    Object.assign(this.label.style, { left: `${left + (isLeft ? x - width - 12 : x + 12)}px`, top: `${top + Math.max(Math.min(y + 12, box.height - height), 0)}px` });
    clearTimeout(this.asked);
    const mine = (this.asked = setTimeout(async () => {
      const row = await this.frameAt(ns);
      if (row && mine === this.asked && !this.label.hidden) this.fill([...rows, ["next frame", row]]);
    }, FRAME_DELAY_MS));
  }

  fill(rows) {
    this.label.replaceChildren(...rows.flatMap(([name, text, colour]) => {
      const key = element("span", { className: "key" });
      if (colour) key.style.setProperty("--colour", colour);
      return [element("dt", {}, ...(colour ? [key] : []), name), element("dd", { textContent: text })];
    }));
  }

  /** Return name, text and colour of everything that the panels show at a place on the axis. */
  readings(at, near) {
    const rows = new Map();
    const traces = this.figure._fullData.filter((each) => each.visible === true && each.x?.length);
    const [limit] = limitsOf(traces, at, at + near / NEAR_PX);
    if (limit) rows.set("limit", ["limit", limit.words, traces.find((each) => each.meta?.limit === limit.limit).marker.color]);
    for (const trace of traces.filter((each) => !isLimit(each))) {
      const { name, x, y, mode, hovertemplate: template = "" } = trace;
      if (trace.type === "bar") {
        const i = placeOf(x, at);
        if (i >= 0 && at < x[i] + trace.width[i]) rows.set(name, [name, plainText(String(trace.customdata[i])), trace.marker.color]);
      } else if (mode === "markers" && trace.text) {
        const i = placeOf(x, at + near);
        if (i >= 0 && x[i] >= at - near) rows.set(name, [name, plainText(trace.text[i]), trace.marker.color]);
      } else if (!rows.has(name) && /\{y/.test(template)) {
        const i = placeOf(x, at);
        if (i >= 0) rows.set(name, [name, valueText(y[i], template), mode === "markers" ? trace.marker.color : trace.line.color]);
      }
    }
    return [...rows.values()];
  }
}
