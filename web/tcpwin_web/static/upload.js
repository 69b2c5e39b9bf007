// Uploads from any page: files dropped anywhere, or chosen on the upload page, are sent together with their progress;
// then comes the page of the capture that they make.
"use strict";

const UNITS = ["B", "kB", "MB", "GB", "TB"];
const RATE_MS = 4000;

/** A size with three digits: 12.3 MB. */
function bytesText(bytes) {
  let value = bytes, unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) { value /= 1000; unit += 1; }
  return `${unit ? Number(value.toPrecision(3)) : value} ${UNITS[unit]}`;
}

function timeText(seconds) {
  if (seconds < 60) return `${Math.max(Math.ceil(seconds), 1)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** Where an upload tells how it goes: on the upload page below its form, elsewhere above the page. */
function uploadPanel() {
  const own = document.getElementById("uploading") ?? document.body.appendChild(element("section", { id: "uploading", className: "floating" }));
  own.setAttribute("aria-label", "Upload");
  const told = element("p", { className: "told" });
  told.setAttribute("role", "status");
  const bar = element("progress", { max: 1, value: 0 });
  bar.setAttribute("aria-label", "Upload");
  const button = element("button", { type: "button", className: "plain", textContent: "Cancel" });
  own.replaceChildren(told, element("div", { className: "row" }, bar, button));
  own.scrollIntoView({ block: "nearest" });
  return { own, told, bar, button };
}

class Upload {
  constructor({ name = "", ...asked } = {}) {
    Object.assign(this, { name, asked, parts: [], sent: 0, samples: [], sending: null, isCancelled: false });
    this.panel = uploadPanel();
    this.panel.button.addEventListener("click", () => {
      this.isCancelled = true;
      this.sending?.abort();
    });
  }
  /** Files that come while others are sent belong to the same capture. */
  add(parts) {
    this.parts.push(...parts);
  }
  get total() {
    return this.parts.reduce((sum, part) => sum + part.size, 0);
  }
  tell(part, sent) {
    const now = performance.now(), all = this.sent + sent;
    this.samples = [...this.samples.filter(([at]) => at > now - RATE_MS), [now, all]];
    const [[since, before]] = this.samples;
    const rate = now > since ? ((all - before) * 1000) / (now - since) : 0;
    const left = rate ? `, ${bytesText(rate)}/s, ${timeText((this.total - all) / rate)} left` : "";
    this.panel.told.textContent = `Sending ${part.name}: ${bytesText(all)} of ${bytesText(this.total)}${left}`;
    this.panel.bar.value = this.total ? all / this.total : 0;
  }
  put(url, part) {
    // fetch tells nothing of what was sent so far.
    return new Promise((done, fail) => {
      const sending = (this.sending = new XMLHttpRequest());
      sending.open("PUT", url);
      sending.setRequestHeader("X-CSRF-Token", csrf);
      sending.upload.onprogress = (event) => this.tell(part, event.loaded);
      sending.onload = () => {
        if (sending.status < 300) return done();
        let detail = sending.statusText;
        try { detail = JSON.parse(sending.responseText).detail; } catch { /* no problem document */ }
        fail(new Error(detail.startsWith(part.name) ? detail : `${part.name}: ${detail}`));
      };
      sending.onerror = () => fail(new Error(`${part.name}: the connection to the service was lost.`));
      sending.onabort = () => fail(new Error("Cancelled."));
      sending.send(part.body);
    });
  }
  async run() {
    const capture = await ask("/api/v1/captures", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: this.name || this.parts[0].name, ...this.asked }),
    });
    const place = `/api/v1/captures/${capture.id}`;
    try {
      for (let next = 0; next < this.parts.length; next += 1) {
        const part = this.parts[next];
        if (this.isCancelled) throw new Error("Cancelled.");
        this.tell(part, 0);
        await this.put(`${place}/files?name=${encodeURIComponent(part.name)}${part.kind}`, part);
        this.sent += part.size;
      }
      await ask(`${place}/analysis`, { method: "POST" });
    } catch (error) {
      await ask(place, { method: "DELETE" }).catch(() => {});
      throw error;
    }
    location.assign(`/captures/${capture.id}`);
  }
  fail(error) {
    const told = element("p", { className: "warning", textContent: error.message });
    told.setAttribute("role", "alert");
    this.panel.own.replaceChildren(told);
  }
}

const form = document.getElementById("upload");
const files = document.getElementById("files");
let current = null;

/** What the fields of the upload page say beside files. */
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
    current.add([{ name: "pasted.txt", body, size: body.size, kind: "&kind=snapshot" }]);
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
  const names = [...files.files].map((file) => element("li", { textContent: `${file.name} (${bytesText(file.size)})` }));
  document.getElementById("chosen").replaceChildren(...names);
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
