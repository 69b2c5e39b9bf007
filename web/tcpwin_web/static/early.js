// Apply the stored theme and clock before the page is shown.
"use strict";

document.documentElement.dataset.theme = localStorage.getItem("tcpwin-theme") ?? "auto";
document.documentElement.dataset.clock = localStorage.getItem("tcpwin-clock") ?? "utc";
