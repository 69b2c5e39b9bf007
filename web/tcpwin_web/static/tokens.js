// The page of API tokens: creates a token and shows its secret once.
"use strict";

document.getElementById("new-token").addEventListener("submit", async (event) => {
  event.preventDefault();
  const value = (id) => document.getElementById(id).value.trim();
  try {
    const made = await ask(event.target.dataset.url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name: value("token-name"), scope: value("token-scope"), days: Number(value("token-days")) }),
    });
    say(`The token of ${made.name}, shown only this once:`);
    const copy = element("button", { type: "button", className: "plain", textContent: "Copy token" });
    copy.dataset.copy = made.secret;
    const done = element("a", { className: "button plain", href: "/tokens", textContent: "Copied: show the list" });
    document.getElementById("made").replaceChildren(element("code", { textContent: made.secret }), copy, done);
    event.target.reset();
  } catch (error) {
    say(error.message);
  }
});
