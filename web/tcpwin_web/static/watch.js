// The page of a recorder: shows each round as it arrives.
"use strict";

const watched = document.getElementById("watched");
if (watched) {
  const table = document.getElementById("worst-now");
  const SVG = "http://www.w3.org/2000/svg";

  const put = (name, text, parent) => {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  };

  /** Append a text with commands in backticks. */
  const putMarked = (text, parent) => {
    text.split("`").forEach((part, place) => { if (part) put(place % 2 ? "code" : "span", part, parent); });
  };

  const seconds = (ns) => `${(ns / 1e9).toLocaleString(undefined, { maximumSignificantDigits: 3 })} s`;

  const draw = (sketch, parent) => {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "sketch");
    svg.setAttribute("viewBox", "0 0 60 20");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    for (const name of ["closed", "flight", "window"]) {
      if (!sketch[name]) continue;
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", name);
      path.setAttribute("d", sketch[name]);
      svg.append(path);
    }
    parent.append(svg);
  };

  const showWorst = (worst) => {
    const rows = worst.map((each) => {
      const row = document.createElement("tr");
      put("td", each.ends.join(" → "), row).className = "wraps";
      const answer = put("td", each.text, row);
      answer.className = "wide";
      if (each.fix) putMarked(`Fix: ${each.fix}`, put("p", "", answer));
      const sketched = put("td", "", row);
      sketched.className = "sketched";
      if (each.sketch) draw(each.sketch, sketched);
      put("td", each.is_problem ? seconds(each.lost_ns) : "–", row).className = "number";
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
    table.hidden = !rows.length;
    const none = document.getElementById("no-worst");
    none.hidden = Boolean(rows.length);
    none.textContent = "No connection in the newest packets.";
  };

  const line = (each) => {
    if (each.type === "bundle") return `Bundle ${each.path}`;
    if (each.type === "trouble") return each.text;
    return `${each.rule} ${each.name}, ${each.client} → ${each.server}: ${each.text}`;
  };

  const events = new EventSource(watched.dataset.events);
  events.addEventListener("round", (event) => {
    const report = JSON.parse(event.data);
    const round = report.round;
    const problems = Object.values(round.problems).reduce((sum, count) => sum + count, 0);
    const dropped = round.dropped ? `, ${round.dropped.toLocaleString()} dropped` : "";
    watched.textContent =
      `${report.name}: ${round.packets.toLocaleString()} packets${dropped}; the last ${seconds(round.span_ns)}: ` +
      `${round.connections.toLocaleString()} connections, ${problems.toLocaleString()} with a problem`;
    if (report.worst !== null) showWorst(report.worst);
    document.getElementById("no-strikes").hidden = Boolean(report.lately.length);
    document.getElementById("strikes").replaceChildren(
      ...report.lately.toReversed().map((each) => {
        const item = document.createElement("li");
        item.textContent = line(each);
        return item;
      }),
    );
  });
  // The browser reconnects by itself.
  events.addEventListener("away", () => {
    watched.textContent = `The recorder at ${watched.dataset.address} does not answer. Retrying.`;
  });
}
