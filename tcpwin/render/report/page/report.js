"use strict";
// Unpacks and draws the figures when they come into view, fills the table of connections, switches the theme.
(() => {
  const root = document.documentElement;
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  async function unpack(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }
  const unpacked = new Map();
  function once(id, use) {
    if (!unpacked.has(id)) unpacked.set(id, unpack(id).then(use));
    return unpacked.get(id);
  }

  // ---- theme -----------------------------------------------------------------------------------------------------
  const system = matchMedia("(prefers-color-scheme: dark)");
  let isPrinted = Boolean(root.dataset.print);
  const isDark = () => !isPrinted && (root.dataset.theme === "dark" || (root.dataset.theme === "auto" && system.matches));

  // ---- figures ---------------------------------------------------------------------------------------------------
  const SETTINGS = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
  const COLOURS = JSON.parse(document.getElementById("colours").textContent);
  const PAPER_WIDTH = 700;
  const PAPER_HEIGHT = 900;
  const MOST_PATTERNED = 12;
  const MOST_PATTERNED_OF_ALL = 40;
  const drawn = new Map();
  const shown = new Map();

  function loadPlotly() {
    return once("packed-plotly", (code) => {
      const script = document.createElement("script");
      script.textContent = code;
      document.head.append(script);
      return window.Plotly;
    });
  }
  function inColours(value, map) {
    if (typeof value === "string") return map[value] ?? recoloured(value, map);
    if (Array.isArray(value)) return value.map((each) => inColours(each, map));
    if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
      if ("bdata" in value) return value;
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inColours(each, map)]));
    }
    return value;
  }
  // Titles contain their colour in a style.
  const recoloured = (text, map) => text.includes("color:#") ? text.replace(/#[0-9a-f]{6}/gi, (c) => map[c] ?? c) : text;
  function inTheme(figure) {
    const copy = structuredClone(figure);
    if (!isDark()) return copy;
    const hover = copy.layout.hoverlabel;
    copy.layout = inColours(copy.layout, COLOURS.dark);
    copy.data = inColours(copy.data, COLOURS.dark);
    if (hover) copy.layout.hoverlabel = { ...copy.layout.hoverlabel, bgcolor: COLOURS.darkHover };
    return copy;
  }
  // If the legend fits only one column, the figure grows, so that its plot keeps its height.
  async function makeRoom(plot, figure) {
    const shown = find(".legend .bg", plot)?.getBoundingClientRect().height ?? 0;
    const lacking = Math.round(shown - (figure.layout.meta?.legend_height ?? shown));
    if (lacking < 20) return;
    figure.layout.height += lacking;
    figure.layout.meta.legend_height += lacking;
    plot.style.height = `${figure.layout.height}px`;
    await window.Plotly.relayout(plot, { height: figure.layout.height });
  }
  async function draw(plot) {
    if (drawn.has(plot)) return drawn.get(plot);
    const work = (async () => {
      const [Plotly, figures] = await Promise.all([loadPlotly(), once(plot.dataset.figure, JSON.parse)]);
      const figure = figures[Number(plot.dataset.place)];
      const themed = inTheme(figure);
      await Plotly.newPlot(plot, themed.data, themed.layout, SETTINGS);
      await window.followTicks(plot);
      await makeRoom(plot, figure);
      shown.set(plot, figure);
      plot.dataset.drawn = "true";
      return figure;
    })();
    drawn.set(plot, work);
    work.catch((error) => {
      plot.textContent = "This browser cannot draw the figure: it needs one of 2023 or later.";
      plot.dataset.drawn = "failed";
      console.error(error);
    });
    return work;
  }
  // In a PDF, each bar's pattern is a picture as large as all bars: only few bars of the first figures keep theirs.
  let patterned = 0;
  function plain(trace, bars) {
    // Each dot that is not opaque is also a picture.
    if (trace.type === "scatter" && trace.marker?.opacity) delete trace.marker.opacity;
    if (!trace.marker?.pattern) return;
    if (bars > MOST_PATTERNED || patterned + bars > MOST_PATTERNED_OF_ALL) delete trace.marker.pattern;
    else patterned += bars;
  }
  function redraw() {
    for (const [plot, figure] of shown) {
      const themed = inTheme(figure);
      // A figure taller than a page would be split: shrink it.
      const share = isPrinted ? Math.min(1, PAPER_HEIGHT / parseFloat(plot.style.height)) : 1;
      plot.style.zoom = share;
      if (isPrinted) themed.layout.width = PAPER_WIDTH / share;
      if (isPrinted) themed.data.forEach((trace, place) => plain(trace, plot.calcdata[place].length));
      const ranges = Object.entries(plot.layout).filter(([name]) => /^[xy]axis/.test(name));
      for (const [name, axis] of ranges) if (themed.layout[name] && axis.range) themed.layout[name].range = [...axis.range];
      window.Plotly.react(plot, themed.data, themed.layout, SETTINGS);
    }
  }
  const plots = all(".plot");
  const drawAll = () => Promise.all(plots.map(draw));
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "600px" });
  plots.forEach((plot) => near.observe(plot));
  // Draw the others when the browser is idle, so that they are ready for printing.
  const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 500));
  const drawRest = () => {
    const next = plots.find((plot) => !drawn.has(plot));
    if (next) draw(next).then(() => whenIdle(drawRest), () => {});
  };
  setTimeout(() => whenIdle(drawRest), 2000);

  const chooser = find("#theme");
  chooser.value = root.dataset.theme;
  chooser.addEventListener("change", () => { root.dataset.theme = chooser.value; redraw(); });
  system.addEventListener("change", redraw);

  // ---- copying ---------------------------------------------------------------------------------------------------
  for (const button of all(".copy")) {
    button.hidden = false;
    const label = button.firstChild;
    button.addEventListener("click", async () => {
      const code = find("code", button.parentElement);
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        getSelection().selectAllChildren(code);
        document.execCommand("copy");
      }
      label.data = "Copied";
      setTimeout(() => { label.data = "Copy"; }, 1500);
    });
  }
  // Make scrolling elements focusable, and only those, so that keys can scroll them.
  const boxes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const name = find("caption", target)?.textContent;
      if (target.scrollWidth <= target.clientWidth || !name) for (const each of ["tabindex", "role", "aria-label"]) target.removeAttribute(each);
      else { target.tabIndex = 0; target.setAttribute("role", "region"); target.setAttribute("aria-label", name); }
    }
  });
  all(".scroll:not(.rows)").forEach((each) => boxes.observe(each));
  all(".needs-script").forEach((each) => { each.hidden = false; });

  // ---- the table of connections ----------------------------------------------------------------------------------
  // The same as tcpwin/units.py, for the values of this table; tests/report/standalone compares the two.
  const PREFIXES = ["", "k", "M", "G", "T"];
  const TIMES = [["d", 86400e6, 3], ["h", 3600e6, 2], ["min", 60e6, 2], ["s", 1e6, 1], ["ms", 1e3, 1], ["µs", 1, 0]];
  const SMALLER = { min: ["s", 1e6], h: ["min", 60e6], d: ["h", 3600e6] };
  const rounded = (value) => Number(value.toPrecision(3));
  const digits = (value) => rounded(value).toLocaleString("en", { maximumFractionDigits: 3 });
  function scaled(value, unit) {
    let place = 0;
    while (rounded(value / 1000 ** place) >= 1000 && place < PREFIXES.length - 1) place += 1;
    if (place) return `${digits(value / 1000 ** place)} ${PREFIXES[place]}${unit}`;
    // "0 B" would mean that there is none.
    if (value > 0 && value < 0.5) return `${value < 0.001 ? "less than 0.001" : Number(value.toPrecision(2))} ${unit}`;
    return `${value.toFixed(0)} ${unit}`;
  }
  function time(us) {
    if (us === 0) return "0 s";
    const [unit, size] = TIMES.find(([, each, least]) => rounded(us / each) >= least);
    if (!SMALLER[unit]) return `${digits(us / size)} ${unit}`;
    const [smaller, each] = SMALLER[unit];
    const count = Math.floor(us / each + 0.5);
    const [whole, left] = [Math.floor(count / (size / each)), count % (size / each)];
    if (whole >= 100) return `${Math.floor(us / size + 0.5).toLocaleString("en")} ${unit}`;
    return `${whole.toLocaleString("en")} ${unit}${left ? ` ${left} ${smaller}` : ""}`;
  }
  const SAY = {
    int: (value) => value.toLocaleString("en"),
    bytes: (value) => scaled(value, "B"),
    bps: (value) => scaled(value, "bit/s"),
    us: time,
    text: (value) => value,
    name: (value, column) => column.names[value],
  };

  // The page states it in words.
  const PRINTED_ROWS = 20;

  class Rows {
    constructor(columns) {
      this.columns = columns;
      this.box = find("#rows");
      this.body = find("#table tbody");
      this.count = columns[0].values.length;
      this.order = Uint32Array.from({ length: this.count }, (_, row) => row);
      this.shown = this.order;
      this.marked = -1;
      this.height = 0;
      this.isPrinted = isPrinted;
      this.told = new Set(all(".connection").map((each) => each.id));
      this.texts = null;
      this.sorting = null;
      this.heads = all("#table thead th");
      this.heads.forEach((head, place) => find("button", head).addEventListener("click", () => this.sortBy(place)));
      this.box.addEventListener("scroll", () => this.render(), { passive: true });
      new ResizeObserver(() => this.render()).observe(this.box);
      find("#search").addEventListener("input", (event) => this.search(event.target.value));
      find("#table").setAttribute("aria-rowcount", String(this.count + 1));
      this.say();
      this.render();
    }
    cell(column, row) {
      const value = column.values[row];
      return value === null ? "–" : SAY[column.kind](value, column);
    }
    line(row, place) {
      const line = document.createElement("tr");
      line.setAttribute("aria-rowindex", String(place + 2));
      if (row === this.marked) line.className = "marked";
      this.columns.forEach((column, at) => {
        const cell = document.createElement(at === 0 ? "th" : "td");
        if (!["text", "name"].includes(column.kind)) cell.className = "number";
        const text = this.cell(column, row);
        if (at === 0) {
          cell.scope = "row";
          const name = `connection-${column.values[row]}`;
          if (this.told.has(name)) {
            const link = document.createElement("a");
            link.href = `#${name}`;
            link.textContent = text;
            cell.append(link);
          } else cell.textContent = text;
        } else cell.textContent = text;
        line.append(cell);
      });
      return line;
    }
    space(height) {
      const line = document.createElement("tr");
      line.className = "space";
      line.setAttribute("aria-hidden", "true");
      const cell = document.createElement("td");
      cell.colSpan = this.columns.length;
      cell.style.height = `${height}px`;
      line.append(cell);
      return line;
    }
    print(isPrinted) {
      this.isPrinted = isPrinted;
      this.render();
    }
    render() {
      const total = this.shown.length;
      this.box.classList.toggle("few", total <= 12);
      if (!this.height && total) {
        this.body.replaceChildren(this.line(this.shown[0], 0));
        this.height = this.body.firstChild.getBoundingClientRect().height || 29;
      }
      // Browsers limit an element's height: beyond half of the limit, one row's height stands for several rows.
      const step = Math.max(1, (total * this.height) / 8e6);
      const top = Math.max(0, Math.floor((this.box.scrollTop / this.height) * step) - 8);
      const first = this.isPrinted ? 0 : top;
      const last = Math.min(total, this.isPrinted ? PRINTED_ROWS : first + Math.ceil(this.box.clientHeight / this.height) + 24);
      const lines = [];
      for (let place = first; place < last; place += 1) lines.push(this.line(this.shown[place], place));
      const above = (first / step) * this.height;
      const below = this.isPrinted ? 0 : Math.max(0, (total / step - first / step - (last - first)) * this.height);
      this.body.replaceChildren(...(above ? [this.space(above)] : []), ...lines, ...(below ? [this.space(below)] : []));
    }
    say() {
      const number = (count) => count.toLocaleString("en");
      const found = this.shown.length;
      find("#matches").value = `${found === this.count ? "" : `${number(found)} of `}${number(this.count)} ${this.count === 1 ? "row" : "rows"}`;
    }
    sortBy(place) {
      const column = this.columns[place];
      const isText = column.kind === "text" || column.kind === "name";
      // The first click sorts numbers in descending order; names, connection numbers and start times in ascending order.
      const isFirst = this.sorting?.place !== place;
      const isDown = isFirst ? !isText && column.key !== "id" && column.key !== "start" : !this.sorting.isDown;
      this.sorting = { place, isDown };
      this.heads.forEach((head, at) => {
        if (at === place) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      const values = column.kind === "name" ? column.values.map((value) => column.names[value]) : column.values;
      const compare = isText ? new Intl.Collator("en", { numeric: true }).compare : (one, other) => one - other;
      const sign = isDown ? -1 : 1;
      // Rows without a value come last in either order.
      this.order = this.order.slice().sort((one, other) => {
        const [left, right] = [values[one], values[other]];
        if (left === null || right === null) return (left === null) - (right === null) || one - other;
        return sign * compare(left, right) || one - other;
      });
      this.search(find("#search").value);
    }
    search(text) {
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) this.shown = this.order;
      else {
        this.texts ??= Array.from({ length: this.count }, (_, row) => this.columns
          .filter((column) => column.kind === "text" || column.kind === "name")
          .map((column) => this.cell(column, row)).join(" ").toLowerCase() + ` #${this.columns[0].values[row]} `);
        this.shown = this.order.filter((row) => words.every((word) => this.texts[row].includes(word)));
      }
      this.box.scrollTop = 0;
      this.say();
      this.render();
    }
    mark(id) {
      const row = this.columns[0].values.indexOf(id);
      if (row < 0) return;
      this.marked = row;
      const place = this.shown.indexOf(row);
      const step = Math.max(1, (this.shown.length * this.height) / 8e6);
      this.box.scrollTop = Math.max(0, (place / step) * this.height - this.box.clientHeight / 2);
      this.render();
      this.box.scrollIntoView({ block: "center" });
    }
  }
  let rows = null;
  const ready = document.getElementById("packed-table")
    ? once("packed-table", (text) => { rows = new Rows(JSON.parse(text).columns); follow(); })
    : Promise.resolve();

  // A link to a connection that is not shown in full leads to its row.
  function follow() {
    const found = /^#connection-(\d+)$/.exec(location.hash);
    if (found && !document.getElementById(found[0].slice(1))) rows?.mark(Number(found[1]));
  }
  addEventListener("hashchange", follow);

  // ---- printing --------------------------------------------------------------------------------------------------
  let opened = [];
  let screenTheme = root.dataset.theme;
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    opened.forEach((each) => { each.open = true; });
    rows?.print(true);
    isPrinted = true;
    screenTheme = root.dataset.theme;
    root.dataset.theme = "light";
    redraw();
  });
  addEventListener("afterprint", () => {
    opened.forEach((each) => { each.open = false; });
    rows?.print(false);
    isPrinted = Boolean(root.dataset.print);
    root.dataset.theme = screenTheme;
    redraw();
  });
  // A program that prints the page requests everything at once.
  if (root.dataset.print) {
    root.dataset.theme = "light";
    Promise.all([ready, drawAll()]).then(() => { root.dataset.ready = "true"; });
  }
})();
