// The capture page: rows that link to their connections, and sketches loaded after the page.
"use strict";

const SKETCHES = document.currentScript.dataset.sketches;

/** Load the missing sketches. */
async function fillSketches() {
  const empty = [...document.querySelectorAll("[data-sketch]:empty")];
  const ids = [...new Set(empty.map((each) => each.dataset.sketch))];
  if (!ids.length) return;
  const answer = await fetch(`${SKETCHES}?${new URLSearchParams(ids.map((id) => ["connection", id]))}`);
  if (!answer.ok) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const each of empty) {
    const drawn = found.querySelector(`[data-sketch="${each.dataset.sketch}"]`)?.cloneNode(true);
    if (!drawn?.firstElementChild) continue;
    // A table cell has no room for the legend.
    each.replaceChildren(...(each.matches("td") ? [drawn.querySelector("svg")] : drawn.childNodes));
  }
}
document.addEventListener("followed", fillSketches);
fillSketches();

// A click anywhere in a row follows its link, unless text is being selected.
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-href]");
  if (!row || event.target.closest("a, button") || String(getSelection())) return;
  if (event.ctrlKey || event.metaKey) open(row.dataset.href, "_blank", "noopener");
  else location.assign(row.dataset.href);
});

document.getElementById("rename")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const tags = document.getElementById("new-tags").value.split(",").map((each) => each.trim()).filter(Boolean);
  try {
    await ask(event.target.dataset.url, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: document.getElementById("new-name").value.trim(), tags }),
    });
    goOn("", "named");
  } catch (error) {
    document.getElementById("said-name").textContent = error.message;
  }
});
