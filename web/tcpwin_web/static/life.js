// A connection's whole life below its figures, on their axis, with the span that they show, which can be resized, moved or drawn.
"use strict";

/** Part of the span by which the figures' axis exceeds it on each side. */
const AXIS_MARGIN = 0.01;
const SHARE_OF_STEP = 1 / 100, SHARE_OF_PAGE = 1 / 10;
// A shorter movement is a click.
const DRAGGED_PX = 4;

class Life {
  /** `chosen` is called with a span, in nanoseconds since the start, after a drag, a click or a key press. */
  constructor(place, figure, { lifeNs, leastNs, chosen }) {
    Object.assign(this, { place, figure, lifeNs, leastNs, chosen, span: { from: 0, to: lifeNs }, dragged: null });
    this.handles = [...place.querySelectorAll("[data-end]")];
    place.addEventListener("pointerdown", (event) => this.take(event));
    place.addEventListener("pointermove", (event) => this.drag(event));
    place.addEventListener("pointerup", (event) => this.release(event));
    place.addEventListener("pointercancel", () => this.leave());
    new ResizeObserver(() => this.draw(this.dragged?.span ?? this.span)).observe(place);
    for (const handle of this.handles) handle.addEventListener("keydown", (event) => this.step(event, handle.dataset.end));
  }

  /** Show the life of this direction's data. */
  turn(direction) {
    for (const each of this.place.querySelectorAll("[data-direction]")) each.hidden = each.dataset.direction !== direction;
  }

  /** Show a span selected elsewhere; does not interrupt a drag. */
  show({ from, to }) {
    this.span = { from, to };
    if (!this.dragged) this.draw(this.span);
  }

  /** Put the drawing under the figure's time axis, which begins and ends a hundredth of its span earlier and later. */
  align() {
    const size = this.figure._fullLayout?._size;
    if (!size) return;
    const margin = (size.w * AXIS_MARGIN) / (1 + 2 * AXIS_MARGIN);
    Object.assign(this.place.style, { paddingLeft: `${size.l + margin}px`, paddingRight: `${size.r + margin}px` });
    this.draw(this.dragged?.span ?? this.span);
  }

  draw({ from, to }) {
    const [least, most] = [from, to].map((each) => each / this.lifeNs);
    const { left, width, outer } = this.box();
    const put = (name, start, end) => Object.assign(this.place.querySelector(name).style, { left: `${start}px`, width: `${Math.max(end - start, 0)}px` });
    const [begin, end] = [left + least * width, left + most * width];
    put(".before", left, begin);
    put(".after", end, left + width);
    // Visible however short it is.
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

  /** Return the position of the drawing within the place, in pixels. */
  box() {
    const style = getComputedStyle(this.place);
    const left = parseFloat(style.paddingLeft);
    return { left, width: Math.max(this.place.clientWidth - left - parseFloat(style.paddingRight), 1), outer: this.place.clientWidth };
  }

  /** Return the time at the pointer, which may lie outside the life. */
  at(event) {
    const { left, width } = this.box();
    const x = event.clientX - this.place.getBoundingClientRect().left - this.place.clientLeft;
    return ((x - left) / width) * this.lifeNs;
  }

  take(event) {
    if (event.button || this.dragged) return;
    const { from, to } = this.span;
    const isWhole = from <= 0 && to >= this.lifeNs;
    const at = this.at(event);
    const part = event.target.dataset.end ?? (at >= from && at <= to && !isWhole ? "both" : "new");
    this.dragged = { part, at, x: event.clientX, from, to, span: this.span, isMoved: false };
    this.place.setPointerCapture(event.pointerId);
    if (event.target.dataset.end) event.target.focus({ preventScroll: true });
    event.preventDefault();
  }

  drag(event) {
    const { dragged } = this;
    if (!dragged || (!dragged.isMoved && Math.abs(event.clientX - dragged.x) < DRAGGED_PX)) return;
    dragged.isMoved = true;
    const at = this.at(event);
    dragged.span = this.moved(dragged, at);
    this.draw(dragged.span);
  }

  moved({ part, at: began, from, to }, at) {
    const within = (ns, low, high) => Math.min(Math.max(ns, low), high);
    if (part === "from") return { from: within(from + at - began, 0, to - this.leastNs), to };
    if (part === "to") return { from, to: within(to + at - began, from + this.leastNs, this.lifeNs) };
    if (part === "new") return { from: within(Math.min(began, at), 0, this.lifeNs), to: within(Math.max(began, at), 0, this.lifeNs) };
    return this.put(from + at - began, to - from);
  }

  /** Return a span of this length that starts here, moved to lie within the life. */
  put(from, length) {
    const begin = Math.min(Math.max(from, 0), this.lifeNs - length);
    return { from: begin, to: begin + length };
  }

  release() {
    const { dragged } = this;
    if (!dragged) return;
    this.dragged = null;
    const { from, to } = this.span;
    // A click outside the span centres it there.
    if (dragged.isMoved) this.choose(dragged.span);
    else if (dragged.part === "new" && to - from < this.lifeNs) this.choose(this.put(dragged.at - (to - from) / 2, to - from));
  }

  leave() {
    this.dragged = null;
    this.draw(this.span);
  }

  choose({ from, to }) {
    const begin = Math.max(from, 0);
    this.chosen(begin, Math.max(Math.min(to, this.lifeNs), begin + this.leastNs));
  }

  /** Move one end by the keys of a slider (WAI-ARIA authoring practices). */
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
