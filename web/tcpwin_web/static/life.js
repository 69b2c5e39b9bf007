// The whole life of a connection below its figures, with the span that they show: dragged, moved or chosen anew.
"use strict";

const SHARE_OF_STEP = 1 / 100, SHARE_OF_PAGE = 1 / 10;
// Below it the mouse was held still: a click.
const DRAGGED_PX = 4;

class Life {
  /** `chosen` is told a span, in nanoseconds since the life began, once it was let go of or a key was pressed. */
  constructor(place, { lifeNs, leastNs, chosen }) {
    Object.assign(this, { place, lifeNs, leastNs, chosen, span: { from: 0, to: lifeNs }, held: null });
    this.handles = [...place.querySelectorAll("[data-end]")];
    place.addEventListener("pointerdown", (event) => this.take(event));
    place.addEventListener("pointermove", (event) => this.drag(event));
    place.addEventListener("pointerup", (event) => this.release(event));
    place.addEventListener("pointercancel", () => this.leave());
    new ResizeObserver(() => this.draw(this.held?.span ?? this.span)).observe(place);
    for (const handle of this.handles) handle.addEventListener("keydown", (event) => this.step(event, handle.dataset.end));
  }

  /** Show the life of this direction's data. */
  turn(direction) {
    for (const each of this.place.querySelectorAll("[data-direction]")) each.hidden = each.dataset.direction !== direction;
  }

  /** Show a span that was chosen elsewhere; one that is being dragged stays. */
  show({ from, to }) {
    this.span = { from, to };
    if (!this.held) this.draw(this.span);
  }

  draw({ from, to }) {
    const [least, most] = [from, to].map((each) => each / this.lifeNs);
    const { left, width, outer } = this.box();
    const put = (name, start, end) => Object.assign(this.place.querySelector(name).style, { left: `${start}px`, width: `${Math.max(end - start, 0)}px` });
    const [begin, end] = [left + least * width, left + most * width];
    put(".before", left, begin);
    put(".after", end, left + width);
    // However short, it is seen.
    put(".chosen", begin - 2, Math.max(end, begin + 1) + 2);
    const [first, last] = this.handles;
    const thick = first.offsetWidth;
    first.style.left = `${Math.max(begin - 1 - thick, 0)}px`;
    last.style.left = `${Math.min(end + 1, outer - thick)}px`;
    this.place.classList.toggle("zoomed", from > 0 || to < this.lifeNs);
    for (const handle of this.handles) {
      const now = handle.dataset.end === "from" ? from : to;
      const [low, high] = handle.dataset.end === "from" ? [0, to] : [from, this.lifeNs];
      for (const [name, ns] of [["valuemin", low], ["valuemax", high], ["valuenow", now]]) handle.setAttribute(`aria-${name}`, ns / 1e9);
      handle.setAttribute("aria-valuetext", `${secondsText(now)} s`);
    }
  }

  /** Where the life is drawn within the place, in pixels. */
  box() {
    const style = getComputedStyle(this.place);
    const left = parseFloat(style.paddingLeft);
    return { left, width: Math.max(this.place.clientWidth - left - parseFloat(style.paddingRight), 1), outer: this.place.clientWidth };
  }

  /** The time at the pointer, which may be beyond the life. */
  at(event) {
    const { left, width } = this.box();
    const x = event.clientX - this.place.getBoundingClientRect().left - this.place.clientLeft;
    return ((x - left) / width) * this.lifeNs;
  }

  take(event) {
    if (event.button || this.held) return;
    const { from, to } = this.span;
    const isWhole = from <= 0 && to >= this.lifeNs;
    const at = this.at(event);
    const part = event.target.dataset.end ?? (at >= from && at <= to && !isWhole ? "both" : "new");
    this.held = { part, at, x: event.clientX, from, to, span: this.span, isMoved: false };
    this.place.setPointerCapture(event.pointerId);
    if (event.target.dataset.end) event.target.focus({ preventScroll: true });
    event.preventDefault();
  }

  drag(event) {
    const { held } = this;
    if (!held || (!held.isMoved && Math.abs(event.clientX - held.x) < DRAGGED_PX)) return;
    held.isMoved = true;
    const at = this.at(event);
    held.span = this.moved(held, at);
    this.draw(held.span);
  }

  moved({ part, at: began, from, to }, at) {
    const within = (ns, low, high) => Math.min(Math.max(ns, low), high);
    if (part === "from") return { from: within(from + at - began, 0, to - this.leastNs), to };
    if (part === "to") return { from, to: within(to + at - began, from + this.leastNs, this.lifeNs) };
    if (part === "new") return { from: within(Math.min(began, at), 0, this.lifeNs), to: within(Math.max(began, at), 0, this.lifeNs) };
    return this.put(from + at - began, to - from);
  }

  /** A span of this length that begins here, or as near as the life allows. */
  put(from, length) {
    const begin = Math.min(Math.max(from, 0), this.lifeNs - length);
    return { from: begin, to: begin + length };
  }

  release() {
    const { held } = this;
    if (!held) return;
    this.held = null;
    const { from, to } = this.span;
    // A click beside the span brings it there.
    if (held.isMoved) this.choose(held.span);
    else if (held.part === "new" && to - from < this.lifeNs) this.choose(this.put(held.at - (to - from) / 2, to - from));
  }

  leave() {
    this.held = null;
    this.draw(this.span);
  }

  choose({ from, to }) {
    const begin = Math.max(from, 0);
    this.chosen(begin, Math.max(Math.min(to, this.lifeNs), begin + this.leastNs));
  }

  /** Keys of a slider (WAI-ARIA authoring practices): one end moves, the other stays. */
  step(event, end) {
    const { from, to } = this.span;
    const [low, high] = end === "from" ? [0, to - this.leastNs] : [from + this.leastNs, this.lifeNs];
    const now = this.span[end];
    const moves = {
      ArrowLeft: now - SHARE_OF_STEP * this.lifeNs,
      ArrowDown: now - SHARE_OF_STEP * this.lifeNs,
      ArrowRight: now + SHARE_OF_STEP * this.lifeNs,
      ArrowUp: now + SHARE_OF_STEP * this.lifeNs,
      PageDown: now - SHARE_OF_PAGE * this.lifeNs,
      PageUp: now + SHARE_OF_PAGE * this.lifeNs,
      Home: low,
      End: high,
    };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose({ ...this.span, [end]: Math.min(Math.max(moves[event.key], low), high) });
  }
}
