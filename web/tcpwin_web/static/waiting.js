// The page of a running analysis: shows its progress, then the result.
"use strict";

const waiting = document.getElementById("waiting");
if (waiting) {
  const bar = document.getElementById("progress");
  const events = new EventSource(waiting.dataset.progress);
  events.addEventListener("progress", (event) => {
    const now = JSON.parse(event.data);
    if (now.bytes_read !== null && now.total_bytes) {
      bar.value = now.bytes_read / now.total_bytes;
      say(`The analysis has read ${now.bytes_read.toLocaleString()} of ${now.total_bytes.toLocaleString()} bytes.`);
    } else {
      say(`The analysis is ${now.status}.`);
    }
  });
  // The browser reconnects by itself unless the service refused the request.
  events.addEventListener("error", () => {
    if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  });
  events.addEventListener("end", () => {
    events.close();
    if (waiting.dataset.then) location.replace(waiting.dataset.then);
    else location.reload();
  });
}
