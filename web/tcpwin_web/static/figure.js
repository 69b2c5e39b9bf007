// Draws the figure that the page's #figure names in data-source; its text is replaced, or says what went wrong.
"use strict";

// Without these two, plotly.js offers a button that uploads the figure to another host.
const stayHere = { showSendToCloud: false, plotlyServerURL: "" };

async function draw(place) {
  try {
    const answer = await fetch(place.dataset.source);
    const figure = await answer.json();
    if (!answer.ok) throw new Error(figure.detail);
    place.textContent = "";
    await Plotly.newPlot(place, figure.data, figure.layout, { responsive: true, displaylogo: false, ...stayHere });
    place.dataset.drawn = "true";
  } catch (error) {
    place.textContent = `The figure cannot be drawn: ${error.message}`;
  }
}

const place = document.getElementById("figure");
if (place) draw(place);
