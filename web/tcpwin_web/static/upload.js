// The upload page: files dropped or chosen, sent one after another with their progress, then the capture's page.
"use strict";

const form = document.getElementById("upload");
const files = document.getElementById("files");
const drop = document.getElementById("drop");
const bar = document.getElementById("progress");
const cancel = document.getElementById("cancel");
let sending = null;

function list() {
  const names = [...files.files].map((file) => {
    const item = document.createElement("li");
    item.textContent = `${file.name} (${file.size.toLocaleString()} bytes)`;
    return item;
  });
  document.getElementById("chosen").replaceChildren(...names);
}

function put(url, body, sent) {
  // fetch tells nothing of what was sent so far.
  return new Promise((done, fail) => {
    sending = new XMLHttpRequest();
    sending.open("PUT", url);
    sending.setRequestHeader("X-CSRF-Token", csrf);
    sending.upload.onprogress = (event) => sent(event.loaded);
    sending.onload = () => {
      if (sending.status < 300) return done();
      let detail = sending.statusText;
      try { detail = JSON.parse(sending.responseText).detail; } catch { /* no problem document */ }
      fail(new Error(detail));
    };
    sending.onerror = () => fail(new Error("The service cannot be reached."));
    sending.onabort = () => fail(new Error("Cancelled."));
    sending.send(body);
  });
}

async function upload() {
  const parts = [...files.files].map((file) => ({ name: file.name, body: file, size: file.size, kind: "" }));
  const pasted = document.getElementById("pasted").value;
  if (pasted.trim()) {
    const body = new Blob([pasted]);
    parts.push({ name: "pasted.txt", body, size: body.size, kind: "&kind=snapshot" });
  }
  const total = parts.reduce((sum, part) => sum + part.size, 0) || 1;
  const name = document.getElementById("name").value.trim() || parts[0].name;
  const capture = await ask("/api/v1/captures", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name, window_scales: document.getElementById("window_scales").value.split(/\s+/).filter(Boolean) }),
  });
  const place = `/api/v1/captures/${capture.id}`;
  try {
    let before = 0;
    for (const part of parts) {
      say(`Sending ${part.name} …`);
      await put(`${place}/files?name=${encodeURIComponent(part.name)}${part.kind}`, part.body, (sent) => {
        bar.value = (before + sent) / total;
      });
      before += part.size;
    }
    await ask(`${place}/analysis`, { method: "POST" });
  } catch (error) {
    await ask(place, { method: "DELETE" }).catch(() => {});
    throw error;
  }
  location.assign(`/captures/${capture.id}`);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  bar.hidden = cancel.hidden = false;
  bar.value = 0;
  try {
    await upload();
  } catch (error) {
    say(error.message);
    bar.hidden = cancel.hidden = true;
  }
});
files.addEventListener("change", list);
cancel.addEventListener("click", () => sending && sending.abort());
drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  files.files = event.dataTransfer.files;
  list();
});
