// Pictures as SVG: of a machine's moment, of a function in Ask, and a film strip for paper.

const lineHeight = 20, letter = 8.1;

// Drawing collects the parts of a picture.
class Drawing {
  constructor(width) {
    this.width = width;
    this.y = 8;
    this.parts = [];
  }

  text(x, text, more = "") {
    this.parts.push(`<text x="${x}" y="${this.y + 14}" ${more}>${escaped(text)}</text>`);
  }

  box(x, width, fill, more = "") {
    this.parts.push(`<rect x="${x}" y="${this.y}" width="${width}" height="${lineHeight - 2}" rx="3" fill="${fill}" ${more}/>`);
  }

  // words writes a text in as many lines as it needs.
  words(x, text, more) {
    const most = Math.floor((this.width - x - 12) / letter);
    let line = "";
    for (const w of text.split(" ")) {
      if (line && line.length + w.length + 1 > most) {
        this.text(x, line, more);
        this.y += lineHeight;
        line = "";
      }
      line += (line ? " " : "") + w;
    }
    this.text(x, line, more);
    this.y += lineHeight;
  }

  svg() {
    const height = this.y + 10;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${height}" width="${this.width}" height="${height}" font-family="ui-monospace, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#1c1f24"><rect width="100%" height="100%" fill="#ffffff"/>${this.parts.join("")}</svg>`;
  }
}

const bold = 'font-weight="bold"', soft = 'fill="#4d5560"';

// pictureOfMachine draws a moment: what happened, the code around the probes and the CPUs.
function pictureOfMachine(v, width = 860) {
  const d = new Drawing(width);
  const e = v.events[v.sub];
  d.words(12, e ? `${e.who}: ${e.text}` : v.did || `${v.steps} steps`, bold);
  for (const c of v.code) {
    const near = (i) => [-2, -1, 0, 1, 2].some((k) => { const r = c.rows[i + k]; return r && (r.cpus?.length || r.probe || r.was || r.bytes.some((b) => b.changed)); });
    const rows = c.rows.filter((r, i) => c.rows.length <= 8 || near(i));
    if (!rows.length) continue;
    d.y += 4;
    d.text(12, c.name, `${bold} ${soft}`);
    d.y += lineHeight;
    for (const r of rows) {
      if (r.cpus?.length) d.box(8, width - 16, "#eef3fa");
      d.text(12, r.place.slice(0, 9), soft);
      d.text(92, r.cpus?.length ? `${r.cpus.join(", ")} ▶` : r.probe ? "● probe" : "", r.cpus?.length ? 'fill="#0b57a4" font-weight="bold"' : "");
      r.bytes.forEach((b, i) => {
        const x = 190 + i * 24;
        if (b.changed || b.poked) d.box(x - 2, 21, b.changed ? "#ffe27a" : "#fbe7b5");
        d.text(x, b.value, b.poked ? bold : "");
      });
      d.text(190 + Math.max(7, r.bytes.length) * 24, r.text + (r.was ? `   (was ${r.was})` : ""));
      d.y += lineHeight;
    }
  }
  d.y += 4;
  for (const c of v.cpus) d.words(12, `${c.name}: ${c.call} ${c.state}${c.where ? `, at ${c.where}` : ""}`, soft);
  return d.svg();
}

const fills = { refused: "#f9d6d3", accepted: "#fbe7b5", optimized: "#cbeccf", inside: "#e4e7eb", ftrace: "#d5e3fb", "": "#ffffff" };

// pictureOfFunction draws the code around the chosen byte with its answers.
function pictureOfFunction(f, at) {
  const d = new Drawing(1100);
  d.words(12, at === null ? `${f.name}, by the rules of ${f.profile}` : `${says()}, by the rules of ${f.profile}`, bold);
  const all = f.bytes.filter((b) => b.length || b.kind !== "inside");
  const here = Math.max(0, all.findLastIndex((b) => b.offset <= (at ?? 0)));
  for (const b of all.slice(Math.max(0, here - 10), here + 14)) {
    if (b.offset === at) d.box(8, 1084, "#eef3fa");
    d.text(12, offset(b.offset), soft);
    f.bytes.slice(b.offset, b.offset + Math.max(1, b.length ?? 1)).forEach((x, i) => {
      d.box(80 + i * 24 - 2, 21, fills[x.kind], x.offset === at ? 'stroke="#1c1f24" stroke-width="2"' : "");
      d.text(80 + i * 24, x.value);
    });
    d.text(80 + Math.max(8, b.length ?? 1) * 24, b.text ?? "");
    d.y += lineHeight;
    if (b.kind) d.words(104, words(b), `${soft} font-size="11"`);
  }
  return d.svg();
}

function pictureOf() {
  const m = the();
  if (m?.view) return pictureOfMachine(m.view);
  if (ask.of) return pictureOfFunction(ask.of, ask.at);
  throw new Error("There is no function and no machine on the page.");
}

// mostFrames is the most pictures of a film strip.
const mostFrames = 80;

// strip makes a film strip of the machine's steps so far: a picture for each event.
async function strip() {
  const m = the();
  if (!m?.view) throw new Error("A film strip shows a machine: open Watch, a lesson or a film.");
  $("status").textContent = "Making the film strip …";
  try {
    const frames = [];
    const done = (m.view.schedule.match(/[a-z]\d*/g) ?? []).flatMap((p) => Array.from({ length: Number(p.slice(1) || 1) }, () => p[0]));
    for (let n = 1; n <= done.length && frames.length < mostFrames; n++) {
      const at = { do: "watch", ...m.scenario, by: "protocol", schedule: done.slice(0, n).join(""), sub: -1 };
      const v = await question(at);
      const last = n === done.length && m.view.sub >= 0 ? m.view.sub + 1 : v.events.length;
      for (let sub = 0; sub < last && frames.length < mostFrames; sub++) frames.push(await question({ ...at, sub }));
      if (!v.events.length && n === done.length) frames.push(v);
    }
    if (!frames.length) throw new Error("Nobody has taken a step yet: a film strip shows steps.");
    const title = [m.scenario.probes, m.scenario.calls].filter(Boolean).join("; ").replaceAll("\n", ", ");
    $("strip").replaceChildren(el("h2", {}, title), el("p", {}, address()), el("ol", {}, ...frames.map((v, i) => {
      const li = el("li", {});
      const picture = new DOMParser().parseFromString(pictureOfMachine(v, 640), "image/svg+xml").documentElement;
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", `${i + 1}: ${v.events[v.sub] ? `${v.events[v.sub].who}: ${v.events[v.sub].text}` : v.did}`);
      li.append(picture);
      return li;
    })));
    document.documentElement.classList.add("strip");
    return frames.length;
  } finally {
    $("status").textContent = "Ready";
  }
}
