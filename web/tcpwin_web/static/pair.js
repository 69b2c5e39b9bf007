// The page of both ends: the ladder of the connection that is chosen.
"use strict";

const place = document.getElementById("figure");

function draw() {
  drawFigure(place, `${place.dataset.source}?${place.dataset.query}`);
}
if (place) {
  document.addEventListener("theme", draw);
  draw();
}
