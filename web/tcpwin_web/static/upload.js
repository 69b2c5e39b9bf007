// Uploads from any page: files dropped anywhere, or chosen on the upload page, become one capture, whose page opens
// afterwards. Files are sent by tus 1.0: a lost connection costs only the data in flight.
"use strict";

const UNITS = ["B", "kB", "MB", "GB", "TB"];
const RATE_MS = 4000;
const TUS = { "Tus-Resumable": "1.0.0" };
const MOST_WAIT_S = 30;
// Statuses of a stalled upload or one in progress elsewhere, of a busy or stopping service, and of proxies without one.
const RETRIED = [408, 423, 429, 499, 502, 503, 504];

/** Format a size with three digits: 12.3 MB. */
function bytesText(bytes) {
  let value = bytes, unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) { value /= 1000; unit += 1; }
  return `${unit ? Number(value.toPrecision(3)) : value} ${UNITS[unit]}`;
}

function timeText(seconds) {
  if (seconds < 60) return `${Math.max(Math.ceil(seconds), 1)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** Create the progress panel: below the form on the upload page, floating elsewhere. */
function uploadPanel() {
  const own = document.getElementById("uploading") ?? document.body.appendChild(element("section", { id: "uploading", className: "floating" }));
  own.setAttribute("aria-label", "Upload");
  const text = element("p");
  text.setAttribute("role", "status");
  const bar = element("progress", { max: 1, value: 0 });
  bar.setAttribute("aria-label", "Upload");
  const button = element("button", { type: "button", className: "plain", textContent: "Cancel" });
  own.replaceChildren(text, element("div", { className: "row" }, bar, button));
  own.scrollIntoView({ block: "nearest" });
  return { own, text, bar, button };
}

/** The connection was lost or the service is busy: the data sent so far is kept. */
class Lost extends Error {}

const CUT = "The connection to the service was lost.";
const reach = (url, options) => fetch(url, options).catch(() => { throw new Lost(CUT); });
const refusal = (part, status, detail) => RETRIED.includes(status) ? new Lost(detail)
  : new Error(detail.startsWith(part.name) ? detail : `${part.name}: ${detail}`);
const refusalOf = async (part, answer) => refusal(part, answer.status, (await answer.json().catch(() => ({}))).detail ?? answer.statusText);

/** Encode a text for tus metadata. */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

// Unfinished uploads of this browser, so that they resume after a page reload.
const PREFIX = "tcpwin-upload ";
const keyOf = ({ name, size, body }) => PREFIX + JSON.stringify([name, size, body.lastModified]);
function saveUpload(part, place) {
  try { localStorage.setItem(keyOf(part), JSON.stringify({ place, url: part.url })); } catch { /* no storage */ }
}
function savedUpload(part) {
  try { return JSON.parse(localStorage.getItem(keyOf(part))); } catch { return null; }
}
function discardUpload(part) {
  try { localStorage.removeItem(keyOf(part)); } catch { /* no storage */ }
}

class Upload {
  constructor({ name = "", ...settings } = {}) {
    Object.assign(this, { name, settings, parts: [], sent: 0, samples: [], sending: null, isCancelled: false });
    this.panel = uploadPanel();
    this.panel.button.addEventListener("click", () => {
      this.isCancelled = true;
      this.sending?.abort();
    });
  }
  /** Add files to the same capture, even while others are being sent. */
  add(parts) {
    this.parts.push(...parts);
  }
  get total() {
    return this.parts.reduce((sum, part) => sum + part.size, 0);
  }
  showProgress(part, sent) {
    const now = performance.now(), all = this.sent + sent;
    this.samples = [...this.samples.filter(([at]) => at > now - RATE_MS), [now, all]];
    const [[since, before]] = this.samples;
    const rate = now > since ? ((all - before) * 1000) / (now - since) : 0;
    const left = rate ? `, ${bytesText(rate)}/s, ${timeText((this.total - all) / rate)} left` : "";
    this.panel.text.textContent = `Sending ${part.name}: ${bytesText(all)} of ${bytesText(this.total)}${left}`;
    this.panel.bar.value = this.total ? all / this.total : 0;
  }
  /** Send a file from an offset on; by XMLHttpRequest, since fetch reports no upload progress. */
  patch(url, part, offset) {
    return new Promise((done, fail) => {
      const sending = (this.sending = new XMLHttpRequest());
      sending.open("PATCH", url);
      for (const [name, value] of Object.entries({ ...TUS, "X-CSRF-Token": csrf, "Upload-Offset": offset })) sending.setRequestHeader(name, value);
      sending.setRequestHeader("Content-Type", "application/offset+octet-stream");
      sending.upload.onprogress = (event) => this.showProgress(part, offset + event.loaded);
      sending.onload = () => {
        if (sending.status < 300) return done();
        // Chromium itself repeats a request after a lost connection, from the same offset.
        if (sending.status === 409) return fail(new Lost(CUT));
        let detail = sending.statusText;
        try { detail = JSON.parse(sending.responseText).detail; } catch { /* no problem document */ }
        fail(refusal(part, sending.status, detail));
      };
      sending.onerror = () => fail(new Lost(CUT));
      sending.onabort = () => fail(new Error("Cancelled."));
      sending.send(part.body.slice(offset));
    });
  }
  /** Return the bytes of a file that the service has; null if it does not know the upload. */
  async arrived({ url, ...part }) {
    const answer = await reach(url, { headers: TUS });
    if (answer.ok) return Number(answer.headers.get("Upload-Offset"));
    if (answer.status === 404) return null;
    throw await refusalOf(part, answer);
  }
  async begin(place, part) {
    const headers = { ...TUS, "X-CSRF-Token": csrf, "Upload-Length": part.size };
    headers["Upload-Metadata"] = `filename ${base64(part.name)}${part.kind ? `,kind ${base64(part.kind)}` : ""}`;
    const answer = await reach(`${place}/uploads`, { headers, method: "POST" });
    if (answer.ok) return answer.headers.get("Location");
    throw await refusalOf(part, answer);
  }
  /** Send a file, resuming after lost connections until it is complete or cancelled. */
  async put(place, part) {
    let offset = 0, tries = 0;
    for (;;) {
      const before = offset;
      try {
        if (part.url) offset = await this.arrived(part);
        if (!part.url || offset === null) {
          // A restarted service has lost its unfinished uploads.
          part.url = await this.begin(place, part);
          offset = 0;
          saveUpload(part, place);
        }
        if (offset > before) tries = 0;
        this.showProgress(part, offset);
        if (offset < part.size) await this.patch(part.url, part, offset);
        return;
      } catch (error) {
        if (this.isCancelled) throw new Error("Cancelled.");
        if (!(error instanceof Lost)) throw error;
        await this.wait(error.message, Math.min(2 ** tries, MOST_WAIT_S));
        tries += 1;
      }
    }
  }
  /** Wait until the next attempt; less if the network returns, or on Cancel. */
  async wait(reason, seconds) {
    this.samples = [];
    this.panel.text.textContent = `${reason} Trying again in ${seconds} s.`;
    await new Promise((done) => {
      const timer = setTimeout(done, seconds * 1000);
      const now = () => { clearTimeout(timer); done(); };
      addEventListener("online", now, { once: true });
      this.panel.button.addEventListener("click", now, { once: true });
    });
    if (this.isCancelled) throw new Error("Cancelled.");
  }
  /** Return the capture that an earlier page was uploading to, if it still accepts these files. */
  async earlier() {
    const known = this.parts.map((part) => [part, savedUpload(part)]).filter(([, found]) => found);
    if (!known.length) return null;
    const { place } = known[0][1];
    const capture = await ask(place).catch(() => null);
    if (capture?.status !== "open") return null;
    for (const [part, found] of known) if (found.place === place) part.url = found.url;
    for (const [part] of known) if (part.url && (await this.arrived(part).catch(() => null)) === null) return null;
    return capture;
  }
  async run() {
    const found = await this.earlier();
    if (!found) for (const part of this.parts) delete part.url;
    const capture = found ?? (await ask("/api/v1/captures", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: this.name || this.parts[0].name, ...this.settings }),
    }));
    const place = `/api/v1/captures/${capture.id}`;
    let started;
    try {
      for (let next = 0; next < this.parts.length; next += 1) {
        const part = this.parts[next];
        if (this.isCancelled) throw new Error("Cancelled.");
        this.showProgress(part, 0);
        await this.put(place, part);
        this.sent += part.size;
      }
      started = await ask(`${place}/analysis`, { method: "POST" });
    } catch (error) {
      for (const { url } of this.parts) if (url) await ask(url, { method: "DELETE", headers: TUS }).catch(() => {});
      await ask(place, { method: "DELETE" }).catch(() => {});
      throw error;
    } finally {
      this.parts.forEach(discardUpload);
    }
    location.assign(started.bundle_id ? `/bundles/${started.bundle_id}` : `/captures/${capture.id}`);
  }
  fail(error) {
    const warning = element("p", { className: "warning", textContent: error.message });
    warning.setAttribute("role", "alert");
    // The focused button is gone: move the focus to the message, from which Tab continues.
    const hadFocus = this.panel.own.contains(document.activeElement);
    this.panel.own.replaceChildren(warning);
    if (hadFocus) {
      warning.tabIndex = -1;
      warning.focus();
    }
  }
}

const form = document.getElementById("upload");
const files = document.getElementById("files");
let current = null;

/** Return the upload page's fields, except the files. */
function given() {
  if (!form) return {};
  return {
    name: document.getElementById("name").value.trim(),
    window_scales: document.getElementById("window_scales").value.split(/\s+/).filter(Boolean),
    filter: document.getElementById("filter").value.trim() || null,
    from: document.getElementById("from").value.trim() || null,
    to: document.getElementById("to").value.trim() || null,
  };
}

const asParts = (list) => [...list].map((file) => ({ name: file.name, body: file, size: file.size, kind: "" }));

async function send(parts) {
  const pasted = document.getElementById("pasted")?.value ?? "";
  if (current) return current.add(parts);
  if (!parts.length) return;
  current = new Upload(given());
  current.add(parts);
  if (pasted.trim()) {
    const body = new Blob([pasted]);
    current.add([{ name: "pasted.txt", body, size: body.size, kind: "snapshot" }]);
  }
  try {
    await current.run();
  } catch (error) {
    current.fail(error);
    current = null;
  }
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  send(asParts(files.files));
});
files?.addEventListener("change", () => {
  const parts = asParts(files.files);
  // Picking the same files after a failure is a change, too.
  files.value = "";
  send(parts);
});

const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
document.addEventListener("dragover", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  root.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) root.classList.remove("dropping"); });
document.addEventListener("drop", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  root.classList.remove("dropping");
  send(asParts(event.dataTransfer.files));
});
