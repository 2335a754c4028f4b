// To lecture and to share: presentation, a frame in another page, copies for other places, pictures and paper, keys.

const modes = new URLSearchParams(location.search);
const presents = modes.has("present"), embedded = modes.has("embed");
document.documentElement.classList.toggle("present", presents);
document.documentElement.classList.toggle("embed", embedded);

// the is the machine on the page, undefined if there is none.
const the = () => ({ watch: () => watch.machine, lesson: () => lesson.machine, film: () => film.machine })[shown]?.();

// stored reads and writes settings in the browser. A browser may refuse to keep them.
const stored = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* then it is for this visit */ } },
};

// The theme: the system's, or the reader's choice.
function theme(name) {
  if (["light", "dark", "contrast"].includes(name)) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  $("theme").value = document.documentElement.dataset.theme ?? "";
}
theme(modes.get("theme") ?? stored.get("theme"));
$("theme").addEventListener("change", (e) => { theme(e.target.value); stored.set("theme", e.target.value); });

// Keys that step a machine. A reader can turn those off that are a letter or a digit.
const steps = {
  ArrowRight: (m) => m.forward(), ArrowLeft: (m) => m.back(), Home: (m) => m.begin(), End: (m) => toTheEnd(m),
  j: (m) => m.forward(), k: (m) => m.back(), p: async (m) => m.play(), m: (m) => m.forward("m"), w: (m) => m.forward("w"),
  1: (m) => m.forward("a"), 2: (m) => m.forward("b"), 3: (m) => m.forward("c"), 4: (m) => m.forward("d"),
};
if (presents) Object.assign(steps, { PageDown: (m) => m.forward(), PageUp: (m) => m.back() });

async function toTheEnd(m) {
  for (let n = 0; n < 400 && await m.forward(); n++);
}

$("letters").checked = stored.get("letters") !== "off";
$("letters").addEventListener("change", (e) => stored.set("letters", e.target.checked ? "on" : "off"));

addEventListener("keydown", (e) => {
  if (!$("blank").hidden) {
    $("blank").hidden = true;
    return e.preventDefault();
  }
  if (e.defaultPrevented || e.ctrlKey || e.altKey || e.metaKey || !hello || $("keys").open) return;
  if (e.target.closest?.("input, textarea, select, dialog, [contenteditable]")) return;
  const letter = e.key.length === 1;
  if (letter && !$("letters").checked) return;
  if (e.key === "?") $("keys").showModal();
  else if (presents && e.key.toLowerCase() === "b") $("blank").hidden = false;
  else {
    const m = the();
    if (!steps[e.key] || !m?.view || (!letter && e.target.closest?.(".scroll, #detail") && e.key.startsWith("Arrow"))) return;
    steps[e.key](m)?.catch?.(complain);
  }
  e.preventDefault();
});
$("show-keys").addEventListener("click", () => $("keys").showModal());

// A page that has this one in a frame: it says where to go and when to step, and hears where the machine is.
// Whatever comes in is checked, for any page can send it.
let listener = null;
try { listener = document.referrer && new URL(document.referrer).origin !== location.origin ? new URL(document.referrer).origin : null; } catch { /* no referrer */ }

addEventListener("message", async ({ source, origin, data }) => {
  if (parent === window || source !== parent || typeof data !== "object" || data === null) return;
  if (!["goto", "step"].includes(data.kprobelab)) return;
  listener = origin === "null" ? "*" : origin; // a file's page has no origin
  if (data.kprobelab === "goto") {
    if (typeof data.place !== "string" || data.place.length > 8000 || !/^#?[a-z]+(\?|$)/.test(data.place) || !views[data.place.replace(/^#/, "").split("?")[0]]) return;
    location.hash = data.place;
  } else {
    if (["forward", "back", "begin"].includes(data.to) && the()?.view) await the()[data.to]().catch(complain);
  }
});

let told;
addEventListener("remembered", () => {
  clearTimeout(told);
  told = setTimeout(() => {
    if (parent === window || !listener) return;
    const v = the()?.view;
    parent.postMessage({ kprobelab: "moved", place: location.hash.slice(1), says: says(), steps: v?.steps ?? 0 }, listener);
  }, 0);
});

// says describes the page in a sentence.
function says() {
  const m = the();
  if (m?.view) {
    const e = m.view.events[m.view.sub] ?? m.view.events.at(-1);
    return e ? `${e.who}: ${e.text}` : m.view.did || `${m.view.steps} steps`;
  }
  const title = document.querySelector("#detail h3")?.textContent, verdict = document.querySelector("#detail .verdict")?.textContent;
  return title && verdict ? `${title}: ${verdict}` : ask.of ? `${ask.of.name}, ${ask.of.size} bytes` : document.title;
}

// address is the page's, in its usual form or in another.
function address(mode) {
  const u = new URL(location.href);
  u.search = mode ? `?${mode}` : "";
  return u.href;
}

async function commandLine() {
  const m = the();
  if (shown === "film") throw new Error("A film comes from the command line: the file's first lines name its kernel. Only the page plays it.");
  if (!m && !ask.of) throw new Error("There is no function and no machine on the page.");
  const c = await question({ do: "command", ...(m ? m.scenario : { ...where(), offset: ask.at ?? 0, release: $("release").value }) });
  return c.line + (c.note ? `\n# ${c.note}` : "");
}

// escaped writes a text for HTML and SVG.
const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

const shares = {
  link: async () => address(),
  markdown: async () => `[${says().replace(/[[\]\\]/g, "\\$&")}](${address().replace(/[()]/g, (c) => (c === "(" ? "%28" : "%29"))})\n` + await commandLine().then((c) => `\n    ${c.replaceAll("\n", "\n    ")}\n`, () => ""),
  iframe: async () => `<iframe src="${escaped(address("embed"))}" title="${escaped(says())}" width="900" height="480" style="border: 0"></iframe>`,
  command: commandLine,
};

for (const b of document.querySelectorAll("#share [data-share]")) {
  b.addEventListener("click", async () => {
    try {
      complain(null);
      const text = await shares[b.dataset.share]();
      $("share-text").value = text;
      $("share-text").hidden = false;
      $("share-text").select();
      const copied = await navigator.clipboard.writeText(text).then(() => true, () => false);
      $("share-said").textContent = (copied ? "Copied." : "Copy it from here.") + (location.protocol === "file:" && b.dataset.share !== "command" ? " This address is a file of this computer: put the page on a web site, or send the file with it." : "");
    } catch (e) {
      complain(e);
    }
  });
}
$("save-picture").addEventListener("click", () => {
  try {
    complain(null);
    const url = URL.createObjectURL(new Blob([pictureOf()], { type: "image/svg+xml" }));
    el("a", { href: url, download: "kprobelab.svg" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  } catch (e) {
    complain(e);
  }
});
$("print-strip").addEventListener("click", () => strip().then(() => print()).catch(complain));
addEventListener("afterprint", () => document.documentElement.classList.remove("strip"));
addEventListener("click", (e) => { if (!e.target.closest("#share")) $("share").open = false; });

// announce says a short sentence to a screen reader.
function announce(text) {
  $("live").textContent = text;
}
addEventListener("remembered", ({ detail }) => detail.view === "ask" && setTimeout(() => shown === "ask" && ask.at !== null && announce(says()), 500));
