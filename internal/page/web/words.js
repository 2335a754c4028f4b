// The words: what a step did, why, where in Linux; the glossary's words are explained where they stand.

// Caption is two lines above the code. The first is one element for good: only then is a change of its text announced.
class Caption {
  constructor(machine) {
    this.machine = machine;
    this.what = el("p", { class: "caption", role: "status" });
    this.why = el("p", { class: "because" });
    this.at = el("div", { class: "says" }, this.what, this.why);
  }

  draw(v) {
    // At the end of a step its last event stays, unless the step has a sentence of its own.
    const m = this.machine, n = v.did ? v.sub : Math.min(v.sub, v.events.length - 1), e = v.events[n];
    const text = m.note || (e ? e.what || `${e.who}: ${e.text}` : v.did) || (v.steps ? `Step ${v.steps} is at its end.` : "Nobody has taken a step yet.");
    if (this.what.textContent !== text) {
      this.what.replaceChildren(...glossed(text));
      this.what.title = "";
    }
    const of = m.note ? null : e;
    m.update(this.why, "why", [of?.why, of?.where, v.sub, v.events.length, text], () => [
      of && v.events.length > 1 ? el("span", { class: "count" }, `event ${n + 1} of ${v.events.length} `) : "",
      ...glossed(of?.why ?? ""),
      of?.where ? el("span", { class: "where" }, " In Linux ", of.where.release, ": ", el("a", { href: sourceOf(of.where), rel: "noreferrer", target: "_blank" }, el("code", {}, of.where.function)), ", ", of.where.file) : ""]);
    this.lights(v, of);
  }

  // lights outlines the bytes and registers that the event is about.
  lights(v, e) {
    const is = new Set(e?.lights ?? []);
    this.machine.lit = { site: e && /^0x/.test(e.site) ? BigInt(e.site) : 0n, is };
  }
}

// sourceOf is the address of a kernel's file; nothing is loaded unless the reader follows it.
const sourceOf = (w) => `https://elixir.bootlin.com/linux/v${w.release}/A/ident/${w.function}`;

// glossary has the words of docs/glossary.md, the longest first.
const glossary = JSON.parse($("glossary").textContent || "{}");
const terms = Object.keys(glossary).filter((t) => !["A", "View", "Reader"].includes(t)).sort((a, b) => b.length - a.length);
const termPattern = terms.length ? new RegExp(`(?<![\\w-])(${terms.map((t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})(s|ed)?(?![\\w-])`, "g") : null;

// glossed makes the words of the glossary that a text has buttons that explain them, each once.
function glossed(text) {
  if (!termPattern) return [text];
  const list = [], seen = new Set();
  let from = 0;
  for (const m of text.matchAll(termPattern)) {
    const word = m[1];
    if (seen.has(word)) continue;
    seen.add(word);
    list.push(text.slice(from, m.index), term(m[0], word));
    from = m.index + m[0].length;
  }
  list.push(text.slice(from));
  return list;
}

function term(text, word) {
  return el("button", { type: "button", class: "term", "aria-expanded": "false", "aria-controls": "says-term", onclick: (e) => showTerm(e.currentTarget, word), onmouseenter: (e) => showTerm(e.currentTarget, word, true), onmouseleave: (e) => e.currentTarget.dataset.hover && hush() }, text);
}

// showTerm shows a word's meaning beside it; a second click hides it.
function showTerm(at, word, hover) {
  const box = $("says-term");
  if (!hover && at.getAttribute("aria-expanded") === "true" && !at.dataset.hover) return hush();
  if (hover && openTerm && !openTerm.dataset.hover) return;
  hush();
  openTerm = at;
  at.setAttribute("aria-expanded", "true");
  if (hover) at.dataset.hover = "1";
  box.replaceChildren(el("strong", {}, word), ": ", glossary[word]);
  box.hidden = false;
  const r = at.getBoundingClientRect(), width = Math.min(420, innerWidth - 16);
  box.style.cssText = `width:${width}px;left:${Math.max(8, Math.min(r.left, innerWidth - width - 8)) + scrollX}px;top:${r.bottom + scrollY + 4}px`;
}

let openTerm = null;
function hush() {
  $("says-term").hidden = true;
  openTerm?.setAttribute("aria-expanded", "false");
  if (openTerm) delete openTerm.dataset.hover;
  openTerm = null;
}
addEventListener("keydown", (e) => { if (e.key === "Escape") hush(); });
addEventListener("pointerdown", (e) => { if (!e.target.closest?.(".term, #says-term")) hush(); });
