// What every page needs: buttons that ask the API for something, times in local time, and how to ask.
"use strict";

const csrf = document.querySelector('meta[name="csrf-token"]').content;

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

for (const button of document.querySelectorAll("button[data-method]")) {
  button.addEventListener("click", async () => {
    if (button.dataset.ask && !confirm(button.dataset.ask)) return;
    button.disabled = true;
    try {
      await ask(button.dataset.url, { method: button.dataset.method });
      location.assign(button.dataset.then);
    } catch (error) {
      button.disabled = false;
      say(error.message);
    }
  });
}

for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  time.title = `${moment.toLocaleString()} here, ${moment.toISOString()} UTC`;
}
