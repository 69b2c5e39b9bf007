// Common to all pages: API requests, buttons that send them, lists that update in place, theme, clock.
"use strict";

const csrf = document.querySelector('meta[name="csrf-token"]').content;
const root = document.documentElement;

async function ask(url, options = {}) {
  const answer = await fetch(url, { ...options, headers: { "X-CSRF-Token": csrf, Accept: "application/json", ...options.headers } });
  if (answer.status === 204) return null;
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.detail || answer.statusText);
  return document;
}

function say(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// ---- theme and clock -------------------------------------------------------------------------------------------

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => root.dataset.theme === "dark" || (root.dataset.theme === "auto" && system.matches);

function choice(name, changed) {
  const chooser = document.getElementById(name);
  if (!chooser) return;
  chooser.value = root.dataset[name];
  chooser.addEventListener("change", () => {
    root.dataset[name] = chooser.value;
    localStorage.setItem(`tcpwin-${name}`, chooser.value);
    changed();
  });
}
const themeChanged = () => document.dispatchEvent(new Event("theme"));
choice("theme", themeChanged);
choice("clock", () => showTimes(document));
system.addEventListener("change", themeChanged);

const two = (value) => String(value).padStart(2, "0");

/** Return a time to the minute in the selected zone, with its UTC offset. */
function momentText(moment) {
  if (root.dataset.clock !== "local") return `${moment.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  const minutes = -moment.getTimezoneOffset();
  const ahead = `${minutes < 0 ? "−" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
  return `${day} ${two(moment.getHours())}:${two(moment.getMinutes())} ${ahead}`;
}

function showTimes(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.textContent = momentText(moment);
    time.title = `${moment.toISOString()}, here ${moment.toLocaleString()}`;
  }
}
showTimes(document);

// ---- focus kept across page loads ------------------------------------------------------------------------------

const FOCUS = "tcpwin-focus";

/** Focus an element, even one that Tab does not reach. */
function focusOn(id) {
  const place = document.getElementById(id);
  if (!place) return;
  if (place.tabIndex < 0) place.tabIndex = -1;
  place.focus();
  // Content that loads above it would push it out of view: keep it there until the reader moves.
  const growing = new ResizeObserver(() => place.scrollIntoView({ block: "nearest" }));
  growing.observe(document.body);
  for (const moved of ["keydown", "pointerdown", "wheel"]) addEventListener(moved, () => growing.disconnect(), { once: true, passive: true });
}

/** Load a page after a change, with the focus on an element: keyboard users continue there, not at the top. */
function goOn(address, id) {
  try { if (id) sessionStorage.setItem(FOCUS, id); } catch { /* the focus starts at the top */ }
  if (address) location.assign(address);
  else location.reload();
}
try {
  focusOn(sessionStorage.getItem(FOCUS) ?? "");
  sessionStorage.removeItem(FOCUS);
} catch { /* no storage */ }

// ---- buttons that send API requests ----------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-method]");
  if (!button || (button.dataset.ask && !confirm(button.dataset.ask))) return;
  button.disabled = true;
  try {
    await ask(button.dataset.url, { method: button.dataset.method });
    goOn(button.dataset.then, button.dataset.focus);
  } catch (error) {
    button.disabled = false;
    button.focus();
    say(error.message);
  }
});

// ---- copying texts ---------------------------------------------------------------------------------------------

/** Copy a text to the clipboard; without TLS, browsers allow only copying a selection. */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const place = element("textarea", { value: text, readOnly: true });
  document.body.append(place);
  place.select();
  const isDone = document.execCommand("copy");
  place.remove();
  if (!isDone) throw new Error("not allowed");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const label = button.textContent;
  try {
    await copyText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = button.dataset.copy;
    return;
  }
  setTimeout(() => { button.textContent = label; }, 2000);
});

// ---- lists that sort, filter and turn pages in place -----------------------------------------------------------

let turn = null;

/** Replace a part of this page with the same part of the page at another URL. */
async function follow(part, address, { isKept = false } = {}) {
  turn?.abort();
  const mine = (turn = new AbortController());
  const place = document.getElementById(part);
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { signal: mine.signal, headers: { Accept: "text/html" } });
    const text = await answer.text();
    const found = answer.ok && new DOMParser().parseFromString(text, "text/html").getElementById(part);
    if (!found) return location.assign(address);
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const left = place.querySelector(".scroll")?.scrollLeft ?? 0;
    place.replaceWith(found);
    showTimes(found);
    const box = found.querySelector(".scroll");
    if (box) box.scrollLeft = left;
    if (focused) found.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    if (isKept) history.pushState(null, "", address);
    else if (address !== location.href) history.replaceState(null, "", address);
    document.dispatchEvent(new Event("followed"));
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const part = link?.closest("[data-live]");
  if (!part || !link.dataset.key || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  follow(part.id, link.href, { isKept: true });
});
// Back and forward restore the list and its form.
addEventListener("popstate", () => {
  const query = new URLSearchParams(location.search);
  for (const form of document.querySelectorAll("form[data-for]")) {
    for (const field of form.elements) if (field.name) field.value = query.get(field.name) ?? field.dataset.otherwise ?? "";
    follow(form.dataset.for, location.href);
  }
});

for (const form of document.querySelectorAll("form[data-for]")) {
  let waiting = 0;
  const send = ({ isKept = false } = {}) => {
    if (!form.checkValidity()) return;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    follow(form.dataset.for, `${form.getAttribute("action") || location.pathname}?${query}`, { isKept });
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); send({ isKept: true }); });
  // Typing adds no history entry per letter.
  form.addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(send, 150, { isKept: event.target.matches("select") });
  });
}

// Poll a list with queued or running analyses until all have ended.
function watchList() {
  if (document.querySelector("#found .badge:is(.queued, .running)")) setTimeout(() => follow("found", location.href), 2000);
}
document.addEventListener("followed", watchList);
watchList();

// ---- keys ------------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const search = document.querySelector('input[type="search"]');
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  }
});
