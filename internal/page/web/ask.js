// Ask: the kernel's answer to a probe at each byte of a function.

const exampleCode = "55 48 89 e5 eb 03 90 48 d1 e0 eb fa 90 90 90 90 90 90 c3";

// ask.of is the function on the page, with the question that was asked for it, ask.at the chosen byte, ask.explained the answer about one; ask.before is
// the same function by the release that was chosen before. ask.done: all answers of ask.of are there.
const ask = { of: null, at: null, open: null, turn: 0, before: null, done: false };

// atPattern is an offset in an address, decimal or with 0x.
const atPattern = /^(0x[0-9a-f]{1,3}|\d{1,4})$/;

views.ask = {
  begin() {
    $("release").append(el("option", { value: "" }, "its own"));
    for (const r of hello.releases) $("release").append(el("option", { value: r.name }, r.name));
    const again = () => ask.asked({ at: null });
    let typing;
    for (const id of ["hex", "asm", "search"]) {
      $(id).addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(again, 150);
      });
    }
    $("release").addEventListener("change", () => ask.asked({ at: ask.at }));
    for (const r of document.getElementsByName("source")) r.addEventListener("change", () => { carry(); again(); });
    $("edit").addEventListener("click", edit);
    $("code").addEventListener("click", (e) => e.target.matches("button.byte") && choose(Number(e.target.dataset.at)).then(near).catch(complain));
    $("code").addEventListener("keydown", (e) => e.target.matches("button.byte") && moved(e));
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
    if (at !== null && !atPattern.test(at)) throw new Error("The place in the code is not a number: the address has been changed.");
    ask.direct = source === "image" && !!$("search").value;
    try {
      await ask.asked({ at: at === null ? null : Number(at) });
    } finally {
      ask.direct = false;
    }
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

// asked requests new answers for the form's input. The code comes first, then its answers, row by row.
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
    const code = from === "image" ? null : own();
    const [f, offset, of] = from === "image" ? await imageFunction() : [await question({ do: "code", lay: true, ...code }), null, code];
    if (turn !== ask.turn) return; // a later question is under way
    if (!sameFunction(f, ask.of)) ask.before = null;
    else if (f.profile !== ask.of.profile && ask.done) ask.before = ask.of;
    ask.of = f && { ...f, from, question: of };
    ask.done = false;
    at ??= offset || null;
    ask.at = f && at !== null && at < f.bytes.length ? at : null;
    remember("ask", state());
    draw();
    if (!f) return;
    if (ask.at !== null) await choose(ask.at);
    if (turn === ask.turn) await rowByRow(turn);
  } catch (e) {
    if (turn !== ask.turn) return;
    ask.of = ask.at = ask.before = null;
    draw();
    complain(e);
    if (e.offer === "gnu") $("error").append(" ", el("button", { type: "button", onclick: () => fromIntel().catch(complain) }, "Take it as Intel syntax"));
  } finally {
    if (turn === ask.turn) $("status").textContent = "Ready";
  }
};

// fromIntel writes the assembly in GNU syntax in its field.
async function fromIntel() {
  $("asm").value = (await question({ do: "gnu", asm: $("asm").value })).asm.trimEnd();
  await ask.asked({ at: null });
  $("asm").focus();
}

// rowByRow requests the answers, those first that the reader sees. A later question ends it.
async function rowByRow(turn) {
  const f = ask.of;
  const rows = [...document.querySelectorAll("#code tbody tr[data-row]")];
  const byOffset = new Map(rows.map((r) => [Number(r.dataset.row), r]));
  const waiting = new Set(f.bytes.filter((b) => b.text || b.kind !== "inside").map((b) => b.offset));
  const all = waiting.size;
  let most = 24, have = 0, under = null;
  // The program has the next rows to answer while these are drawn.
  const request = () => {
    const at = nextRows(rows, waiting, most);
    for (const i of at) waiting.delete(i);
    return at.length ? { at, began: performance.now(), list: question({ do: "answers", ...where(), at }) } : null;
  };
  for (let { at, began, list } = request() ?? { at: [] }; at.length; { at, began, list } = under ?? { at: [] }) {
    const answers = await list;
    if (turn !== ask.turn) return;
    // A batch takes about a tenth of a second of the program, so that any other question is soon answered.
    most = Math.max(24, Math.min(200, Math.round(most * 100 / Math.max(5, performance.now() - began))));
    under = request();
    for (const b of answers) {
      const { value, text, length, to } = f.bytes[b.offset];
      f.bytes[b.offset] = { ...b, value, text, length, to };
    }
    for (const i of at) answered(byOffset.get(i));
    have += at.length;
    document.body.dataset.answers = `${have}/${all}`;
    if (under) {
      $("asking").hidden = false;
      Object.assign($("asking").querySelector("progress"), { max: all, value: have });
      $("asking").querySelector("span").textContent = `${have} of ${all} instructions answered`;
    }
  }
  ask.done = true;
  $("asking").hidden = true;
  $("compared").replaceChildren(...[compared()].filter(Boolean));
  if (ask.before) for (const row of rows) answered(row);
  mark();
}

// nextRows are the offsets of the rows that wait, from the first one in sight on.
function nextRows(rows, waiting, most) {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].getBoundingClientRect().bottom < 0) low = middle + 1;
    else high = middle;
  }
  const list = [];
  for (let i = 0; i < rows.length && list.length < most; i++) {
    const at = Number(rows[(low + i) % rows.length].dataset.row);
    if (waiting.has(at)) list.push(at);
  }
  return list;
}

// where names the function in a question: as it was asked for, whatever the form says by now.
const where = () => ask.of.question;

// own returns the reader's own code from the form.
const own = () => ({ [source()]: $(source()).value || " ", release: $("release").value });

function state() {
  const s = source() === "image" ? { source: "image", image: ask.open?.name ?? "", build: ask.open?.name ? ask.open.build : "", function: ask.of?.name ?? $("search").value, release: $("release").value } : source() === "asm" ? { source: "asm", ...own() } : own();
  return { ...s, at: ask.at };
}

// carry converts the code when the reader switches from bytes to assembly or back.
function carry() {
  if (!ask.of || [ask.of.from, source()].sort().join() !== "asm,hex") return;
  const field = { hex: ask.of.bytes.map((b) => b.value).join(" "), asm: ask.of.bytes.filter((b) => b.text).map((b) => b.text).join("\n") };
  $(source()).value = field[source()];
}

// imageFunction returns the function that is typed, the offset that stands after it, and its question: a name, an alias,
// SYMBOL+OFFSET, an address.
async function imageFunction() {
  await ask.opening?.catch(() => {}); // a file that is being opened is the one that is meant
  const release = $("release").value;
  if (!ask.open || ask.open.asked !== release) await openImage({ name: ask.open?.name ?? "", release });
  $("status").textContent = asking;
  const s = await question({ do: "search", text: $("search").value });
  $("functions").replaceChildren(...s.found.map((f) => el("option", { value: f.name })));
  const name = s.function || s.found.find((f) => f.name === $("search").value)?.name;
  $("found").textContent = name ? "" : s.total === 0 ? "No function has this in its name." : `${s.total} functions; write more of the name, or choose one from the list.`;
  if (!name && !ask.direct) return [null];
  const of = { ...identity(), name: name || $("search").value }; // an address asks for one that is not there: it is an error
  return [await question({ do: "function", lay: true, ...of }), s.offset, of];
}

// identity names the open image in a question.
const identity = () => (ask.open?.name ? { image: ask.open.name, build: ask.open.build } : {});

// openImage opens an image, or the open one by other rules. ask.opening is the last such opening.
function openImage(image, file) {
  return ask.opening = openNow(image, file);
}

async function openNow({ name, release }, file) {
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
    await openImage({ name: file.name, release: "" }, bytes);
    document.querySelector("input[name=source][value=image]").checked = true;
    $("release").value = "";
    const w = ask.wanted;
    ask.wanted = null;
    if (w && w.build && w.build !== ask.open.build) throw new Error(`${file.name} is another image than the address names: its build id is ${ask.open.build || "missing"}, not ${w.build}.`);
    if (!w) $("search").value = "";
    await ask.asked({ at: atPattern.test(w?.at ?? "") ? Number(w.at) : null });
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

// words describe the kernel's answer to a probe at a byte: plain words, then the rule's name.
function words(b) {
  const [plain, rule] = inWords(b);
  return plain + (rule ? ` (${rule})` : "");
}

function inWords(b) {
  if (b.errno) return [`refused: ${b.why}`, [b.errno_name, b.rule].filter(Boolean).join(", ")];
  if (b.kind === "ftrace") return ["called by the function tracer (ftrace): no int3", ""];
  if (b.optimized) return [`int3, ${b.how}; then a jump: optimized`, ""];
  const r = b.reasons[0];
  if (!r) return [`int3, ${b.how}`, ""];
  return [`int3, ${b.how}; no jump: ${r.why}`, r.id + (r.at === b.offset ? "" : ` at ${offset(r.at)}`)];
}

// sameFunction: the same bytes at the same place, under any release.
const sameFunction = (a, b) => !!a && !!b && a.name === b.name && a.address === b.address && a.bytes.map((x) => x.value).join() === b.bytes.map((x) => x.value).join();

// differs: the release before has another answer at a byte.
const differs = (i) => !!ask.before && ask.done && words(ask.before.bytes[i]) !== words(ask.of.bytes[i]);

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
  home();
  $("code").hidden = $("code-title").hidden = !f;
  $("edit").hidden = !f || f.from !== "image";
  $("detail").replaceChildren(el("p", { class: "soft" }, "Choose a byte: every reason stands here."));
  $("detail").hidden = !f;
  $("asking").hidden = true;
  // A name may be of a script that goes from right to left: it turns nothing else around.
  $("code-about").replaceChildren(...(f
    ? [el("bdi", {}, f.name), `, ${f.size} bytes at ${f.address}; profile ${f.profile}: ${f.about}.` + (f.size > f.bytes.length ? ` The first ${f.bytes.length} bytes are shown.` : "")]
    : []));
  if (!f) return;
  const rows = [];
  for (let i = 0; i < f.bytes.length; ) {
    const length = Math.max(1, f.bytes[i].length ?? 1);
    const b = f.bytes[i];
    const row = el("tr", { role: "row", "data-row": i },
      el("th", { scope: "row", role: "rowheader", title: `+${i}` }, offset(i)),
      el("td", { role: "cell" }, ...f.bytes.slice(i, i + length).map(byteButton)),
      el("td", { role: "cell", class: "insn" }, b.text || "(no instruction)"),
      el("td", { role: "cell", class: "words" }));
    rows.push(row);
    i += length;
  }
  $("code").replaceChildren(
    el("div", { id: "compared" }),
    el("p", { class: "key" }, el("span", { class: "optimized" }, "a jump: optimized"), el("span", { class: "accepted" }, "an int3"), el("span", { class: "ftrace" }, "called by ftrace"),
      el("span", { class: "refused" }, "refused"), el("span", { class: "inside" }, "inside of an instruction")),
    el("div", { class: "rows" }, document.createElementNS("http://www.w3.org/2000/svg", "svg"),
      // On a narrow page the answer is below its instruction: then only the roles say that this is a table.
      el("table", { class: `code answers${rows.length > 200 ? " many" : ""}`, role: "table" },
        el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...["at", "bytes", "instruction", "a probe here"].map((h) => el("th", { scope: "col", role: "columnheader" }, h)))),
        el("tbody", { role: "rowgroup" }, ...rows))));
  redraw.disconnect();
  redraw.observe(document.querySelector("#code table"));
  arrows();
}

// answered writes a row's answer.
function answered(row) {
  const i = Number(row.dataset.row);
  const b = ask.of.bytes[i];
  const [plain, rule] = inWords(b);
  row.classList.toggle("differs", differs(i));
  row.lastChild.replaceChildren(plain, ...(rule ? [" ", el("span", { class: "rule" }, rule)] : []),
    ...(differs(i) ? [el("div", { class: "was" }, `by ${ask.before.profile}: ${words(ask.before.bytes[i])}`)] : []),
    ...(b.hazards ?? []).map((h) => el("div", {}, `but: ${h}`)));
  // The whole instruction has the colour of its answer, paler than the byte that a probe would change.
  const [first, ...others] = row.querySelectorAll("button.byte");
  first.classList.add(b.kind);
  first.setAttribute("aria-label", label(b));
  for (const other of others) other.classList.add("of");
}

const label = (b) => `${offset(b.offset)}, byte ${b.value}: ${b.kind === "inside" ? "inside of an instruction, refused" : b.kind ? words(b) : "not answered yet"}`;

function byteButton(b) {
  return el("button", {
    type: "button", class: `byte ${b.kind}`, "data-at": b.offset, tabindex: b.offset === (ask.at ?? 0) ? 0 : -1, "aria-pressed": "false", "aria-label": label(b), title: `${offset(b.offset)} (${b.offset})`,
  }, b.value);
}

// arrows draws the jumps of the function into the margin: short ones next to the code, those that cross them further out.
function arrows() {
  const box = document.querySelector("#code .rows"), svg = box?.querySelector("svg");
  if (!svg || !ask.of) return;
  const jumps = ask.of.bytes.filter((b) => b.to !== undefined).map((b) => ({ from: b.offset, to: b.to }));
  const rows = new Map([...box.querySelectorAll("tr[data-row]")].map((r) => [Number(r.dataset.row), r]));
  // A jump into an instruction leads to that instruction's row.
  const starts = [...rows.keys()];
  const rowOf = (at) => rows.get(at) ?? rows.get(starts.findLast((s) => s < at));
  const most = innerWidth < 640 ? 4 : 9, ends = [];
  jumps.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from));
  for (const j of jumps) {
    const [low, high] = [Math.min(j.from, j.to), Math.max(j.from, j.to)];
    j.lane = 0;
    while (j.lane < most - 1 && (ends[j.lane] ?? []).some(([a, b]) => a < high && low < b)) j.lane++;
    (ends[j.lane] ??= []).push([low, high]);
  }
  const gap = 7, width = jumps.length ? ends.length * gap + 10 : 0;
  box.style.setProperty("--margin", `${width}px`);
  const top = box.getBoundingClientRect().top;
  const middle = (row, d) => row.getBoundingClientRect().top - top + 15 + d;
  const ns = "http://www.w3.org/2000/svg";
  svg.setAttribute("aria-hidden", "true");
  svg.replaceChildren(...jumps.map((j) => {
    const x = width - 8 - j.lane * gap, a = middle(rowOf(j.from), -3), b = middle(rowOf(j.to), 3);
    const g = document.createElementNS(ns, "g");
    g.dataset.from = j.from;
    g.dataset.to = j.to;
    for (const d of [`M${width} ${a}H${x}V${b}H${width - 4}`, `M${width - 5} ${b - 3}l5 3l-5 3z`]) {
      const path = document.createElementNS(ns, "path");
      path.setAttribute("d", d);
      g.append(path);
    }
    return g;
  }));
  svg.setAttribute("width", width);
  svg.setAttribute("height", box.scrollHeight);
  mark();
}

// mark shows the jumps of the chosen byte, and those that lead into what its jump would replace.
function mark() {
  const e = ask.explained;
  const bad = new Set(e?.offset === ask.at ? e?.region?.jumps.filter((j) => j.prohibited).map((j) => j.offset) ?? [] : []);
  for (const g of document.querySelectorAll("#code .rows g")) {
    g.classList.toggle("on", Number(g.dataset.from) === ask.at || Number(g.dataset.to) === ask.at);
    g.classList.toggle("bad", bad.has(Number(g.dataset.from)));
  }
}

// The arrows follow the rows, which grow as answers come.
let drawing;
const redraw = new ResizeObserver(() => { drawing ??= setTimeout(() => { drawing = null; arrows(); }, ask.done ? 100 : 400); });

// beside: the detail stands beside the code; else under the row that is chosen.
const beside = matchMedia("(min-width: 64rem)");
beside.addEventListener("change", () => put());

// home takes the detail out of the rows.
function home() {
  $("beside").append($("detail"));
  document.querySelector("#code tr.under")?.remove();
}

// put brings the detail to its place.
function put() {
  home();
  if (beside.matches || ask.at === null) return;
  const row = button(ask.at)?.closest("tr");
  row?.after(el("tr", { role: "row", class: "under" }, el("td", { role: "cell", colspan: 4 }, $("detail"))));
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
  if (!beside.matches) return button(ask.at)?.closest("tr").scrollIntoView({ block: "start" });
  if ($("detail").getBoundingClientRect().top > innerHeight * 0.8) $("detail").scrollIntoView({ block: "start" });
}

// choose shows all about a byte.
async function choose(at) {
  const turn = ask.turn;
  ask.at = at;
  remember("ask", state());
  const e = await question({ do: "explain", offset: at, ...where() });
  if (turn !== ask.turn || ask.at !== at) return;
  ask.explained = e;
  const start = BigInt(ask.of.address);
  const about = new Set(e.reasons.filter((r) => r.address).map((r) => Number(BigInt(r.address) - start)));
  for (const b of document.querySelectorAll("button.byte")) {
    const here = Number(b.dataset.at);
    b.setAttribute("aria-pressed", String(here === at));
    b.tabIndex = here === at ? 0 : -1;
    b.classList.toggle("about", here !== at && about.has(here));
  }
  $("detail").hidden = false;
  $("detail").replaceChildren(detail(e));
  put();
  $("detail").scrollTop = 0;
  mark();
  byReleases(turn, at).catch(complain);
}

// byReleases asks for the answer by the rules of each release, one after the other.
async function byReleases(turn, at) {
  const list = document.querySelector("#detail .releases");
  for (const r of hello.releases) {
    const b = await question({ do: "release", ...where(), at: [at], by: r.name });
    if (turn !== ask.turn || ask.at !== at || !list.isConnected) return;
    const says = b.kind === "refused" ? `refused, ${b.errno_name}` : { ftrace: "called by ftrace", optimized: "a jump", accepted: "an int3" }[b.kind];
    list.append(el("li", {}, el("button", {
      type: "button", class: `release ${b.kind}`, "aria-pressed": String(r.name === ask.of.profile), title: `${r.name}: ${words(b)}`,
      onclick: () => { $("release").value = r.name; ask.asked({ at }).then(() => document.querySelector(`#detail .releases [aria-pressed=true]`)?.focus()); },
    }, r.name, el("span", { class: "unseen" }, `: ${says}`))));
  }
}

function detail(e) {
  const [verdict, kind] = e.errno ? ["Refused", "refused"] : e.ftrace ? ["Accepted: called by ftrace", "ftrace"] : e.optimized ? ["Accepted: an int3, then a jump", "optimized"] : ["Accepted: an int3, and it stays one", "accepted"];
  const d = el("div", {}, el("h3", {}, `A probe at ${e.symbol}${offset(e.offset)}`),
    el("p", {}, e.inside || (e.instruction ? el("code", {}, e.instruction.text) : "")),
    el("p", { class: `verdict ${kind}` }, verdict));
  d.append(el("p", {}, e.errno
    ? [e.register_why, " ", el("span", { class: "rule" }, `${ask.of.bytes[e.offset]?.errno_name ?? ""} ${e.register_reason}`)].reduce((f, x) => (f.append(x), f), document.createDocumentFragment())
    : `register_kprobe accepts it. It runs ${e.how}.` + (e.emulation ? ` kprobes does to the registers what the instruction would (${e.emulation}).` : "")));
  d.append(el("p", {}, e.optimization));
  if (e.reasons.length) {
    d.append(el("ol", { class: "reasons" }, ...e.reasons.map((r) => el("li", {}, r.sentence, " ",
      el("span", { class: "rule" }, r.id), r.stops ? el("span", { class: "soft" }, " the kernel stops here") : "", el("br", {}), el("span", { class: "soft" }, r.source)))));
  }
  if (e.unless.length) {
    d.append(el("h4", {}, "What prevents the jump at run time"), el("ul", { class: "reasons" }, ...e.unless.map((u) => el("li", {}, u.sentence, el("br", {}), el("span", { class: "soft" }, u.source))),
      el("li", {}, "the optimizer's worker has not come yet: it waits some jiffies, and until all tasks have given up their CPUs")));
  }
  for (const h of e.hazards) d.append(el("p", { class: "wrong" }, h.sentence));
  for (const n of e.notes) d.append(el("p", { class: "soft" }, `Note: ${n}`));
  if (e.region) d.append(picture(e));
  if (e.nearest?.length) {
    d.append(el("p", {}, "Optimized nearby: ", ...e.nearest.flatMap((n) => [el("button", { type: "button", onclick: () => { button(n.offset)?.focus(); choose(n.offset).catch(complain); } }, offset(n.offset)), " "])));
  }
  d.append(el("h4", {}, "By the rules of each release"), el("ul", { class: "releases" }));
  if (e.watch) {
    const s = { ...e.watch, release: $("release").value || e.watch.release, ...ask.of.question, name: undefined };
    d.append(el("p", {}, el("a", { href: `#watch?${new URLSearchParams(s.careless ? s : (delete s.careless, s))}`, class: "action" }, "Watch this probe")));
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
  const table = el("table", { class: "picture" },
    el("tbody", {},
      row("offset", each((o) => el("td", {}, o === 0 ? "IA 0" : offset(o)))),
      row("bytes", each((_, i) => el("td", {}, r.bytes.slice(2 * i, 2 * i + 2)))),
      row("instructions", instructions),
      row("jump", cells(0, 5, "e9 and 4 bytes", "on")),
      e.dcr ? row("DCR", cells(0, Math.min(size(e.dcr), n), "DCR", "on")) : "",
      row("JTPR, the code", cells(1, 6, "JTPR", "no")),
      row("JTPR, the documentation", cells(1, 5, "JTPR", "no")),
      r.jumps.length ? row("jumps lead here", jumps) : ""));
  const list = r.jumps.map((j) => el("li", {}, `to byte ${offset(j.to)} of this picture, from ${offset(j.offset)} in the function: `, el("code", {}, j.text),
    j.prohibited ? (j.documented ? ", prohibited" : ", prohibited by the code, not by the documentation") : ", harmless"));
  return el("div", {}, el("h4", {}, "The region"), el("p", { class: "soft small" }, "IA: where the probe is. DCR: whole instructions, copied into the detour buffer. JTPR: no jump may lead there."), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The region around the probe" }, table), list.length ? el("ul", {}, ...list) : "");
}
