// Ticks of plotly's axes at round steps in the unit shown, written as in text: 60 kB, 2 min 30 s.
// The twin of figures/svg/scale.py.
self.followTicks = (() => {
  "use strict";
  const LEAST_PX = { x: 80, y: 32 };
  const PREFIXES = { "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T" };
  const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000];
  const LONG_S = 120;

  /** Return an axis's unit, and how many of it one of the axis's values is; null if plotly's own ticks are right. */
  function unitOf({ ticksuffix = "", type }) {
    if (type !== "linear" && type !== "log") return null;
    const suffix = ticksuffix.trim();
    if (suffix === "B" || suffix === "bit/s" || suffix === "s") return { unit: suffix, factor: 1 };
    return suffix === "ms" ? { unit: "s", factor: 1e-3 } : null;
  }

  const digitsOf = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const plain = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });

  function roundStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9));
  }

  function timeText(seconds, step) {
    if (seconds < 0) return `-${timeText(-seconds, step)}`;
    const minutes = Math.floor(seconds / 60 + 1e-9), rest = Math.max(seconds - 60 * minutes, 0);
    const hours = Math.floor(minutes / 60), left = minutes % 60;
    const parts = [];
    if (seconds >= 2 * 3600) parts.push(`${hours.toLocaleString("en")} h`, left ? `${left} min` : "");
    else if (minutes) parts.push(`${minutes} min`);
    if (rest > step * 1e-6 || !minutes) parts.push(`${plain(rest, digitsOf(step))} s`);
    return parts.filter(Boolean).join(" ");
  }

  function valueText(value, step, unit) {
    if (!value) return `0 ${unit}`;
    // Bytes and bits have no thousandths.
    const least = unit === "s" ? -9 : 0, most = unit === "s" ? 0 : 12;
    const power = Math.max(Math.min(3 * Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9), most), least);
    return `${plain(value / 10 ** power, digitsOf(step / 10 ** power))} ${PREFIXES[power]}${unit}`;
  }

  /** Return values and texts of about `most` ticks of a linear axis. */
  function linear(low, high, most, { unit }) {
    const wanted = (high - low) / Math.max(most, 1);
    const isLong = unit === "s" && Math.max(Math.abs(low), Math.abs(high)) >= LONG_S;
    const step = (isLong && wanted > 0.5 && STEPS_S.find((each) => each >= wanted * (1 - 1e-9))) || roundStep(wanted);
    const found = [];
    for (let place = Math.ceil(low / step - 1e-9); place <= Math.floor(high / step + 1e-9); place++) found.push(place * step);
    return found.map((value) => [value, isLong ? timeText(value, step) : valueText(value, step, unit)]);
  }

  /** Return powers of ten, with their double and fivefold if these are few, or even steps within one. */
  function logarithmic(low, high, most, kind) {
    const [first, last] = [Math.ceil(low - 1e-9), Math.floor(high + 1e-9)];
    const every = last - first > 1 ? Math.max(1, Math.ceil((last - first + 1) / most)) : 1;
    const found = [];
    for (let power = last - first > 1 ? first : Math.floor(low); power <= Math.ceil(high); power += every) {
      for (const factor of last - first > 1 ? [1] : [1, 2, 5]) found.push(factor * 10 ** power);
    }
    const inside = found.filter((value) => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9);
    if (inside.length < 2) return linear(10 ** low, 10 ** high, most, kind);
    return inside.map((value) => [value, kind.unit === "s" && value >= LONG_S ? timeText(value, 1) : valueText(value, value, kind.unit)]);
  }

  function ticksOf(axis, letter) {
    const kind = unitOf(axis);
    if (!kind || axis.visible === false || !axis._length || !axis.range) return null;
    const most = Math.max(Math.round(axis._length / LEAST_PX[letter]), 2);
    const shift = axis.type === "log" ? Math.log10(kind.factor) : 0;
    const [low, high] = axis.range.map(Number).sort((one, other) => one - other).map((end) => (axis.type === "log" ? end + shift : end * kind.factor));
    if (!(high > low)) return null;
    const found = (axis.type === "log" ? logarithmic : linear)(low, high, most, kind);
    return { vals: found.map(([value]) => value / kind.factor), text: found.map(([, text]) => text) };
  }

  const written = new WeakMap();

  /** Whether an axis has the ticks of this range. Ticks change the margins, and so the length: never for less than one. */
  function isWritten(axis, letter, before) {
    if (!before || axis.tickmode !== "array" || String(before.range) !== String(axis.range)) return false;
    return before.type === axis.type && Math.abs(before.length - axis._length) < LEAST_PX[letter];
  }

  async function write(place) {
    const changed = {};
    const known = written.get(place) || new Map();
    written.set(place, known);
    for (const [name, axis] of Object.entries(place._fullLayout)) {
      const letter = /^([xy])axis\d*$/.exec(name)?.[1];
      if (!letter || isWritten(axis, letter, known.get(name))) continue;
      const ticks = ticksOf(axis, letter);
      if (ticks) known.set(name, { range: [...axis.range], type: axis.type, length: axis._length });
      if (!ticks || (axis.tickmode === "array" && String(axis.tickvals) === String(ticks.vals) && String(axis.ticktext) === String(ticks.text))) continue;
      Object.assign(changed, { [`${name}.tickmode`]: "array", [`${name}.tickvals`]: ticks.vals, [`${name}.ticktext`]: ticks.text });
    }
    if (Object.keys(changed).length) await self.Plotly.relayout(place, changed);
  }

  const followed = new WeakSet();
  /** Write the ticks of a drawn figure's axes, and again whenever their ranges change. */
  return (place) => {
    if (!followed.has(place)) {
      followed.add(place);
      // After the user's change, of which plotly.js would take a change of ticks for a part.
      place.on("plotly_afterplot", () => queueMicrotask(() => write(place)));
    }
    return write(place);
  };
})();
