// Before anything is shown: the theme and the clock that were chosen here before.
"use strict";

document.documentElement.dataset.theme = localStorage.getItem("tcpwin-theme") ?? "auto";
document.documentElement.dataset.clock = localStorage.getItem("tcpwin-clock") ?? "utc";
