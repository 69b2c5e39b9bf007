// Tables loaded page by page from the API.
"use strict";

const PAGE_ROWS = 50;
const count = (value) => value.toLocaleString("en");

/** Format nanoseconds as seconds, to the microsecond. */
function secondsText(ns) {
  const micro = Math.round(Math.abs(ns) / 1000);
  const sign = ns < 0 && micro ? "−" : "";
  return `${sign}${count(Math.floor(micro / 1e6))}.${String(micro % 1e6).padStart(6, "0")}`;
}

class PagedTable {
  /**
   * @param place element with `data-source`, a path of the API, and `data-name`
   * @param key name of the list in the response
   * @param columns objects with `name`, `cell` (row → text or node), `isNumber`, `isHead`
   */
  constructor(place, key, columns) {
    Object.assign(this, { place, key, columns, query: "", offset: 0, total: 0, rows: [], marked: null });
    this.name = place.dataset.name;
  }
  async show(query = this.query, offset = 0) {
    this.aborting?.abort();
    const mine = (this.aborting = new AbortController());
    Object.assign(this, { query, offset });
    this.place.setAttribute("aria-busy", "true");
    try {
      const found = await ask(`${this.place.dataset.source}?${query}&limit=${PAGE_ROWS}${offset === null ? "" : `&offset=${offset}`}`, { signal: mine.signal });
      Object.assign(this, { rows: found[this.key], total: found.total, offset: found.offset ?? offset ?? 0 });
      this.render();
      return found;
    } catch (error) {
      if (error.name !== "AbortError") this.place.replaceChildren(element("p", { className: "quiet", textContent: error.message }));
      return null;
    } finally {
      if (this.aborting === mine) this.place.removeAttribute("aria-busy");
    }
  }
  render() {
    if (!this.rows.length) return this.place.replaceChildren(element("p", { className: "quiet", textContent: "None in this span." }));
    const head = element("tr", {}, ...this.columns.map((each) => element("th", { scope: "col", textContent: each.name, className: each.isNumber ? "number" : "" })));
    const lines = this.rows.map((row) => {
      const line = element("tr", {}, ...this.columns.map((each) => {
        const cell = element(each.isHead ? "th" : "td", { className: each.isNumber ? "number" : each.isWide ? "wide" : "" });
        if (each.isHead) cell.scope = "row";
        cell.append(each.cell(row) ?? "–");
        return cell;
      }));
      if (this.marked !== null && row.frame === this.marked) line.className = "marked";
      return line;
    });
    const left = this.box?.scrollLeft ?? 0;
    this.box = element("div", { className: "scroll rows", tabIndex: 0 });
    this.box.setAttribute("role", "region");
    this.box.setAttribute("aria-label", this.name);
    this.box.append(element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines)));
    this.place.replaceChildren(this.box, this.pager());
    this.box.scrollLeft = left;
    const marked = this.box.querySelector(".marked");
    if (marked) this.box.scrollTop = marked.offsetTop - this.box.clientHeight / 2;
  }
  pager() {
    const move = (words, offset, isPossible) => {
      const button = element("button", { type: "button", className: "plain", textContent: words, disabled: !isPossible });
      button.addEventListener("click", () => this.show(this.query, offset));
      return button;
    };
    const last = this.offset + this.rows.length;
    const bar = element("nav", { className: "pager" },
      move("Previous", Math.max(this.offset - PAGE_ROWS, 0), this.offset > 0),
      element("span", { textContent: `${count(this.offset + 1)}–${count(last)} of ${count(this.total)}` }),
      move("Next", last, last < this.total));
    bar.setAttribute("aria-label", `Pages of ${this.name.toLowerCase()}`);
    return bar;
  }
}
