// Ask: the kernel's answer to a probe at each byte of a function.

const exampleCode = "55 48 89 e5 eb 03 90 48 d1 e0 eb fa 90 90 90 90 90 90 c3";

// ask.of is the function on the page, ask.at the chosen byte; ask.before is the same function
// by the release that was chosen before.
const ask = { of: null, at: null, open: null, turn: 0, before: null };

views.ask = {
  begin() {
    $("release").append(el("option", { value: "" }, "its own"));
    for (const r of hello.releases) $("release").append(el("option", { value: r.name }, r.name));
    const again = () => ask.asked({ at: null });
    let typing;
    for (const id of ["hex", "asm", "search"]) {
      $(id).addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(id === "search" ? searched : again, 150);
      });
    }
    $("release").addEventListener("change", again);
    for (const r of document.getElementsByName("source")) r.addEventListener("change", () => { carry(); again(); });
    $("edit").addEventListener("click", edit);
    $("ask-form").addEventListener("submit", (e) => e.preventDefault());
    $("file").addEventListener("change", (e) => e.target.files[0] && opened(e.target.files[0]));
    served();
  },

  async show(state) {
    const source = ["hex", "asm", "image"].includes(state.get("source")) ? state.get("source") : "hex";
    document.querySelector(`input[name=source][value=${source}]`).checked = true;
    $("hex").value = state.get("hex") ?? exampleCode;
    $("asm").value = state.get("asm") ?? "";
    $("search").value = state.get("function") ?? "";
    if (!hello) return;
    const release = state.get("release") ?? (source === "image" ? "" : hello.default);
    $("release").value = release;
    if (release && $("release").value !== release) {
      $("release").value = hello.default;
      throw new Error(`There is no kernel "${release}" here: the address has been changed.`);
    }
    const at = state.get("at");
    ask.wanted = null;
    if (source === "image") await wanted(state.get("image") ?? "", state.get("build") ?? "", at);
    if (at !== null && !/^\d{1,4}$/.test(at)) throw new Error("The place in the code is not a number: the address has been changed.");
    await ask.asked({ at: at === null ? null : Number(at) });
  },
};

// wanted opens the guest kernel for an address that names no image. Of an address that names one,
// it complains if that image is not open: another kernel's answer would be wrong.
async function wanted(image, build, at) {
  if (image === (ask.open?.name ?? "") && (!build || !image || build === ask.open.build)) return;
  if (image === "") return openImage({ name: "", release: $("release").value });
  ask.wanted = { image, build, at };
  show(null);
  const offered = [...document.querySelectorAll("#served button")].find((b) => b.textContent === image);
  if (offered) return offered.click();
  throw new Error(`This address is about ${image}${build ? `, build id ${build}` : ""}, which is not open here. Choose its file below, or drop it on the page; the function and the byte are kept.`);
}

// show puts a function on the page, nothing for null.
function show(of) {
  ask.turn++;
  $("status").textContent = "Ready";
  ask.of = of;
  ask.at = ask.before = null;
  for (const id of ["hex", "asm", "image"]) $(`ask-${id}`).hidden = source() !== id;
  draw();
}

const source = () => document.querySelector("input[name=source]:checked").value;

const asking = "Asking about each byte …";

// asked requests new answers for the form's input.
ask.asked = async ({ at }) => {
  const turn = ++ask.turn;
  const from = source();
  $("ask-hex").hidden = from !== "hex";
  if (from !== "image") $("release").value ||= hello.default; // bytes have no kernel of their own
  $("ask-asm").hidden = from !== "asm";
  $("ask-image").hidden = from !== "image";
  complain(null);
  $("status").textContent = asking;
  try {
    const answer = from === "image" ? await imageFunction() : await question({ do: "code", ...own() });
    if (turn !== ask.turn) return; // a later question is under way
    if (!sameFunction(answer, ask.of)) ask.before = null;
    else if (answer.profile !== ask.of.profile) ask.before = ask.of;
    ask.of = answer && { ...answer, from };
    ask.at = answer && at !== null && at < answer.bytes.length ? at : null;
    remember("ask", state());
    draw();
    if (ask.at !== null) await choose(ask.at);
  } catch (e) {
    if (turn !== ask.turn) return;
    ask.of = ask.at = ask.before = null;
    draw();
    complain(e);
  } finally {
    if (turn === ask.turn) $("status").textContent = "Ready";
  }
};

// own returns the reader's own code from the form.
const own = () => ({ [source()]: $(source()).value || " ", release: $("release").value });

function state() {
  const s = source() === "image" ? { source: "image", image: ask.open?.name ?? "", build: ask.open?.name ? ask.open.build : "", function: $("search").value, release: $("release").value } : source() === "asm" ? { source: "asm", ...own() } : own();
  return { ...s, at: ask.at };
}

// carry converts the code when the reader switches from bytes to assembly or back.
function carry() {
  if (!ask.of || [ask.of.from, source()].sort().join() !== "asm,hex") return;
  const field = { hex: ask.of.bytes.map((b) => b.value).join(" "), asm: ask.of.bytes.filter((b) => b.text).map((b) => b.text).join("\n") };
  $(source()).value = field[source()];
}

async function imageFunction() {
  const release = $("release").value;
  if (!ask.open || ask.open.asked !== release) await openImage({ name: ask.open?.name ?? "", release });
  if (!$("search").value) {
    await searched();
    return null;
  }
  $("status").textContent = asking;
  return question({ do: "function", ...identity(), name: $("search").value });
}

// identity names the open image in a question.
const identity = () => (ask.open?.name ? { image: ask.open.name, build: ask.open.build } : {});

// openImage opens an image, or the open one by other rules.
async function openImage({ name, release }, file) {
  $("status").textContent = `Opening ${name || "the guest kernel"} …`;
  try {
    const o = await question({ do: "open", name, release }, file);
    ask.open = { name: o.image.name === "guest kernel" ? "" : name, asked: release, profile: o.image.profile, build: o.build };
    $("image-name").replaceChildren(el("bdi", {}, o.image.name), ` is open: ${o.functions} functions, profile ${o.image.profile}` +
      (o.image.standing ? ` (${o.image.standing})` : "") + ".");
  } finally {
    $("status").textContent = "Ready";
  }
}

// fits complains about an image that is too large, before it is read.
function fits({ name, size }) {
  if (size > hello.max_image) {
    throw new Error(`${name} has ${Math.round(size / 2 ** 20)} MB; the page takes images of at most ${hello.max_image / 2 ** 20} MB.`);
  }
}

// opened opens a file that was chosen or dropped.
async function opened(file) {
  complain(null);
  try {
    fits(file);
    const bytes = await file.arrayBuffer();
    document.querySelector("input[name=source][value=image]").checked = true;
    $("release").value = "";
    await openImage({ name: file.name, release: "" }, bytes);
    const w = ask.wanted;
    ask.wanted = null;
    if (w && w.build && w.build !== ask.open.build) throw new Error(`${file.name} is another image than the address names: its build id is ${ask.open.build || "missing"}, not ${w.build}.`);
    if (!w) $("search").value = "";
    await ask.asked({ at: /^\d{1,4}$/.test(w?.at ?? "") ? Number(w.at) : null });
  } catch (e) {
    complain(e);
  }
}

// edit takes the bytes of the image's function as bytes of one's own.
function edit() {
  $("hex").value = ask.of.bytes.map((b) => b.value).join(" ");
  $("release").value = ask.of.profile;
  document.querySelector("input[name=source][value=hex]").checked = true;
  ask.asked({ at: null }).then(() => $("hex").focus());
}

async function searched() {
  try {
    const s = await question({ do: "search", text: $("search").value });
    $("functions").replaceChildren(...s.found.map((f) => el("option", { value: f.name })));
    const exact = !!s.function || s.found.some((f) => f.name === $("search").value);
    if (s.function && s.function !== $("search").value) $("search").value = s.function; // the offset becomes the chosen byte
    $("found").textContent = exact ? "" : s.total === 0 ? "No function has this in its name." : `${s.total} functions; write more of the name, or choose one from the list.`;
    if (exact) await ask.asked({ at: s.offset || null });
    else show(null); // the function before is not the one that is written
  } catch (e) {
    complain(e);
  }
}

// served offers the images of kprobelab serve.
async function served() {
  if (!document.documentElement.dataset.served) return;
  try {
    const list = await (await fetch("images")).json();
    if (list.length === 0) return;
    $("served").hidden = false;
    $("served").append("Images of this server: ", ...list.map((f, i) => el("button", {
      type: "button", onclick: async () => {
        try {
          fits(f);
          const r = await fetch(`image/${i}`);
          if (!r.ok) throw new Error(`${f.name}: the server says ${r.status}.`);
          await opened(new File([await r.blob()], f.name));
        } catch (e) {
          complain(e);
        }
      },
    }, f.name)));
    const w = ask.wanted && [...document.querySelectorAll("#served button")].find((b) => b.textContent === ask.wanted.image);
    if (w) w.click();
  } catch (e) {
    complain(new Error(`The server does not answer: ${e.message}`));
  }
}

// words describe the kernel's answer to a probe at a byte.
function words(b) {
  if (b.errno) return `refused, ${b.errno_name}: ${b.why}`;
  if (b.kind === "ftrace") return "accepted, called by the function tracer (ftrace): no int3";
  if (b.optimized) return `accepted, ${b.how}; optimized`;
  const why = b.reasons.map((r) => r.id + (r.at === b.offset ? "" : ` at ${offset(r.at)}`));
  return `accepted, ${b.how}; not optimized: ${[...new Set(why)].join(", ")}`;
}

// sameFunction: the same bytes at the same place, under any release.
const sameFunction = (a, b) => !!a && !!b && a.name === b.name && a.address === b.address && a.bytes.map((x) => x.value).join() === b.bytes.map((x) => x.value).join();

// differs: the release before has another answer at a byte.
const differs = (i) => !!ask.before && words(ask.before.bytes[i]) !== words(ask.of.bytes[i]);

// compared counts the answers that the choice of a release has changed.
function compared() {
  if (!ask.before) return "";
  const n = ask.of.bytes.filter((b, i) => b.text && differs(i)).length;
  const by = ask.before.profile;
  return el("p", { role: "status" }, n === 0 ? `All answers are those of ${by}.`
    : `${n === 1 ? "1 answer differs" : `${n} answers differ`} from ${n === 1 ? "that" : "those"} of ${by}; what it was stands below.`);
}

function draw() {
  const f = ask.of;
  $("code").hidden = $("code-title").hidden = !f;
  $("edit").hidden = !f || f.from !== "image";
  $("detail").replaceChildren();
  $("detail").hidden = true;
  // A name may be of a script that goes from right to left: it turns nothing else around.
  $("code-about").replaceChildren(...(f
    ? [el("bdi", {}, f.name), `, ${f.size} bytes at ${f.address}; profile ${f.profile}: ${f.about}.` + (f.size > f.bytes.length ? ` The first ${f.bytes.length} bytes are shown.` : "")]
    : []));
  if (!f) return;
  const rows = [];
  for (let i = 0; i < f.bytes.length; ) {
    const length = Math.max(1, f.bytes[i].length ?? 1);
    const b = f.bytes[i];
    rows.push(el("tr", { role: "row", class: differs(i) ? "differs" : null },
      el("th", { scope: "row", role: "rowheader" }, offset(i)),
      el("td", { role: "cell" }, ...f.bytes.slice(i, i + length).map(byteButton)),
      el("td", { role: "cell" }, b.text || "(no instruction)"),
      el("td", { role: "cell", class: "words" }, words(b), differs(i) ? el("div", { class: "was" }, `by ${ask.before.profile}: ${words(ask.before.bytes[i])}`) : "", ...(b.hazards ?? []).map((h) => el("div", {}, `but: ${h}`)))));
    i += length;
  }
  $("code").replaceChildren(
    compared(),
    el("p", { class: "key" }, el("span", { class: "optimized" }, "optimized"), el("span", { class: "accepted" }, "accepted, keeps its int3"), el("span", { class: "ftrace" }, "accepted, called by ftrace"),
      el("span", { class: "refused" }, "refused"), el("span", { class: "inside" }, "inside of an instruction")),
    // On a narrow page the answer is below its instruction: then only the roles say that this is a table.
    el("table", { class: "code answers", role: "table" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...["at", "bytes", "instruction", "a probe here"].map((h) => el("th", { scope: "col", role: "columnheader" }, h)))),
      el("tbody", { role: "rowgroup" }, ...rows)));
}

function byteButton(b) {
  return el("button", {
    type: "button", class: `byte ${b.kind}`, "data-at": b.offset, tabindex: b.offset === (ask.at ?? 0) ? 0 : -1, "aria-pressed": "false",
    "aria-label": `${offset(b.offset)}, byte ${b.value}: ${b.text ? words(b) : "inside of an instruction, refused"}`,
    onclick: () => choose(b.offset).then(near).catch(complain), onkeydown: moved,
  }, b.value);
}

// moved: the arrow keys go from byte to byte.
function moved(e) {
  const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[e.key];
  if (by === undefined) return;
  e.preventDefault();
  const to = Math.min(ask.of.bytes.length - 1, Math.max(0, Number(e.target.dataset.at) + by));
  button(to).focus();
  choose(to).catch(complain);
}

const button = (at) => document.querySelector(`button.byte[data-at="${at}"]`);

// near scrolls to the answer where it is not beside the code.
function near() {
  if ($("detail").getBoundingClientRect().top > innerHeight * 0.8) $("detail").scrollIntoView({ block: "start" });
}

// choose shows all about a byte.
async function choose(at) {
  const turn = ask.turn;
  ask.at = at;
  remember("ask", state());
  const where = source() === "image" ? { ...identity(), name: ask.of.name } : own();
  const e = await question({ do: "explain", offset: at, ...where });
  if (turn !== ask.turn || ask.at !== at) return;
  const about = new Set(ask.of.bytes[at].reasons.map((r) => r.at));
  for (const b of document.querySelectorAll("button.byte")) {
    const here = Number(b.dataset.at);
    b.setAttribute("aria-pressed", String(here === at));
    b.tabIndex = here === at ? 0 : -1;
    b.classList.toggle("about", here !== at && about.has(here));
  }
  $("detail").hidden = false;
  $("detail").replaceChildren(detail(e));
  $("detail").scrollTop = 0;
}

function detail(e) {
  const d = el("div", {}, el("h3", {}, `A probe at ${e.symbol}${offset(e.offset)}`),
    el("p", {}, e.inside || (e.instruction ? el("code", {}, e.instruction.text) : "")));
  d.append(el("p", {}, e.errno
    ? `Registration: refused. ${e.register_reason}: ${e.register_why}`
    : `Registration: accepted, ${e.how}.` + (e.emulation ? ` kprobes does to the registers what the instruction would (${e.emulation}).` : "")));
  d.append(el("p", {}, e.optimization));
  if (e.reasons.length) {
    d.append(el("ol", { class: "reasons" }, ...e.reasons.map((r) => el("li", {},
      el("strong", {}, r.id), r.stops ? " (the kernel stops here)" : "", el("br", {}), r.sentence, el("br", {}), el("span", { class: "soft" }, r.source)))));
  }
  for (const h of e.hazards) d.append(el("p", { class: "wrong" }, h.sentence));
  for (const n of e.notes) d.append(el("p", { class: "soft" }, `Note: ${n}`));
  if (e.region) d.append(picture(e));
  if (e.nearest?.length) {
    d.append(el("p", {}, "Optimized nearby: ", ...e.nearest.flatMap((n) => [el("button", { type: "button", onclick: () => { button(n.offset)?.focus(); choose(n.offset).catch(complain); } }, offset(n.offset)), " "])));
  }
  if (e.text) d.append(el("details", {}, el("summary", {}, "The same as the command line prints it, with slot and detour buffer"), el("pre", { tabindex: 0 }, e.text)));
  return d;
}

// picture is the documentation's: the bytes around the insertion address (IA), the
// detoured code region (DCR), the jump target prohibition region (JTPR).
function picture(e) {
  const r = e.region;
  const n = r.bytes.length / 2;
  const cells = (from, to, inside, kind) => {
    const a = Math.max(0, from - r.from), b = Math.min(n, to - r.from);
    const gap = (k) => (k > 0 ? [el("td", { colspan: k, class: "gap" })] : []);
    return b <= a ? gap(n) : [...gap(a), el("td", { colspan: b - a, class: kind }, inside), ...gap(n - b)];
  };
  const row = (name, list) => el("tr", {}, el("th", { scope: "row" }, name), ...list);
  const each = (f) => Array.from({ length: n }, (_, i) => f(i + r.from, i));
  const size = (range) => parseInt(range.end.slice(-8), 16) - parseInt(range.start.slice(-8), 16);
  const instructions = [];
  let at = r.from;
  for (const i of r.instructions) {
    const a = Math.max(i.start, r.from), b = Math.min(i.end, r.from + n);
    if (b <= at) continue;
    if (a > at) instructions.push(el("td", { colspan: a - at, class: "gap" }));
    instructions.push(el("td", { colspan: b - Math.max(a, at) }, i.text));
    at = b;
  }
  if (at < r.from + n) instructions.push(el("td", { colspan: r.from + n - at, class: "gap" }));
  const jumps = each((o) => el("td", r.jumps.some((j) => j.to === o && j.prohibited) ? { class: "no" } : { class: "gap" }, r.jumps.some((j) => j.to === o) ? "↑" : ""));
  const table = el("table", { class: "picture" }, el("caption", {}, "IA: where the probe is. DCR: whole instructions, copied into the detour buffer. JTPR: no jump may lead there."),
    el("tbody", {},
      row("offset", each((o) => el("td", {}, o === 0 ? "IA 0" : offset(o)))),
      row("bytes", each((_, i) => el("td", {}, r.bytes.slice(2 * i, 2 * i + 2)))),
      row("instructions", instructions),
      row("jump", cells(0, 5, "e9 and 4 bytes", "on")),
      e.dcr ? row("DCR", cells(0, Math.min(size(e.dcr), n), "DCR", "on")) : "",
      row("JTPR, the code", cells(1, 6, "JTPR", "no")),
      row("JTPR, the documentation", cells(1, 5, "JTPR", "no")),
      r.jumps.length ? row("jumps lead here", jumps) : ""));
  const list = r.jumps.map((j) => el("li", {}, `to ${offset(j.to)}, from ${offset(j.offset)} of the function: `, el("code", {}, j.text),
    j.prohibited ? (j.documented ? ", prohibited" : ", prohibited by the code, not by the documentation") : ", harmless"));
  return el("div", {}, el("h4", {}, "The region"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The region around the probe" }, table), list.length ? el("ul", {}, ...list) : "");
}

// An image may be dropped anywhere on the page.
addEventListener("dragover", (e) => { e.preventDefault(); document.body.classList.add("over"); });
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", (e) => {
  e.preventDefault();
  document.body.classList.remove("over");
  const file = e.dataTransfer.files[0];
  if (!file || !hello) return;
  if (place().view !== "ask") location.hash = "ask";
  opened(file);
});
