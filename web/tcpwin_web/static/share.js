// The capture page's share links: made, shown once, listed, revoked.
"use strict";

const links = document.getElementById("links");

async function list() {
  const { shares } = await ask(links.dataset.source);
  links.replaceChildren(...shares.map((share) => {
    const item = document.createElement("li");
    const until = new Date(share.expires_ns / 1e6).toLocaleString();
    item.textContent = `Link, valid until ${until}${share.anonymise ? ", addresses replaced" : ""} `;
    const revoke = document.createElement("button");
    revoke.type = "button";
    revoke.className = "plain";
    revoke.textContent = "Revoke";
    revoke.addEventListener("click", async () => {
      await ask(`/api/v1/shares/${share.id}`, { method: "DELETE" });
      say("The link is revoked.");
      await list();
    });
    item.append(revoke);
    return item;
  }));
}

document.getElementById("make-link").addEventListener("click", async (event) => {
  try {
    const made = await ask(event.target.dataset.url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ days: 7, anonymise: document.getElementById("anonymise").checked }),
    });
    say(`Copy it now, it is shown only once: ${location.origin}${made.path}`);
    await list();
  } catch (error) {
    say(error.message);
  }
});
list().catch((error) => say(error.message));
