// The form for notes on a capture or a connection; remembers the author.
"use strict";

const note = document.getElementById("note");
const author = document.getElementById("note-author");
const AUTHOR = "tcpwin-author";

author.value = localStorage.getItem(AUTHOR) ?? "";
note.addEventListener("submit", async (event) => {
  event.preventDefault();
  const value = (id) => document.getElementById(id)?.value.trim() ?? "";
  const number = (text) => (text ? Number(text) : null);
  try {
    await ask(note.dataset.url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        text: value("note-text"),
        author: value("note-author"),
        connection: number(note.dataset.connection),
        frame: number(value("note-frame")),
        rule: value("note-rule") || null,
      }),
    });
    localStorage.setItem(AUTHOR, value("note-author"));
    goOn("", "notes");
  } catch (error) {
    document.getElementById("note-said").textContent = error.message;
  }
});
