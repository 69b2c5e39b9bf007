// A queued or running twin: shows its progress, then the result.
"use strict";

const twin = document.getElementById("twin");
if (twin) {
  const bar = document.getElementById("twin-progress");
  const POLL_MS = 1000;

  const look = async () => {
    let now;
    try {
      now = await ask(twin.dataset.url);
    } catch {
      // The service may be restarting.
      setTimeout(look, 5 * POLL_MS);
      return;
    }
    if (now.status !== "waiting" && now.status !== "running") {
      location.reload();
      return;
    }
    if (now.progress) {
      bar.value = now.progress.share;
      say(`Run ${now.progress.run} of ${now.progress.runs}: second ${Math.round(now.progress.elapsed_ns / 1e9)} by its own clock.`);
    }
    setTimeout(look, POLL_MS);
  };
  setTimeout(look, POLL_MS);
}
