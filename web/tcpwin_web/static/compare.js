// The comparison page: the selected figure of both connections on the same axes.
"use strict";

const place = document.getElementById("figure");
const kind = document.getElementById("kind");
let drawing = null;

function draw() {
  drawing?.abort();
  drawing = new AbortController();
  drawFigure(place, `${place.dataset.source}${kind.value}?${place.dataset.query}`, { signal: drawing.signal });
}
if (place) {
  kind.addEventListener("change", draw);
  document.addEventListener("theme", draw);
  draw();
}
