// The capture page's share links: create, show once, list, revoke.
"use strict";

const links = document.getElementById("links");

async function list() {
  const { shares } = await ask(links.dataset.source);
  links.replaceChildren(...shares.map((share) => {
    const item = document.createElement("li");
    const until = momentText(new Date(share.expires_ns / 1e6));
    item.textContent = `Link, valid until ${until}${share.anonymise ? ", addresses replaced" : ""} `;
    const revoke = document.createElement("button");
    revoke.type = "button";
    revoke.className = "plain";
    revoke.textContent = "Revoke";
    revoke.addEventListener("click", async () => {
      await ask(`/api/v1/shares/${share.id}`, { method: "DELETE" });
      say("The link is revoked.");
      document.getElementById("made").replaceChildren();
      await list();
      // The pressed button is gone with its link.
      (links.querySelector("button") ?? document.getElementById("make-link")).focus();
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
    const link = `${location.origin}${made.path}`;
    say(`Copy it now, it is shown only once: ${link}`);
    const copy = element("button", { type: "button", className: "plain", textContent: "Copy link" });
    copy.dataset.copy = link;
    const preview = element("a", { className: "button plain", href: link, target: "_blank", rel: "noopener", textContent: "See what it shows" });
    // Update the list above first, so that the buttons do not move once shown.
    await list().finally(() => document.getElementById("made").replaceChildren(copy, preview));
  } catch (error) {
    say(error.message);
  }
});
list().catch((error) => say(error.message));
