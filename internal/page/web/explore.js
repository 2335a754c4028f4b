// Explore: every order of a scenario's steps, the bad ones red, and an order step by step.

const hunt = { list: null, orders: [], lanes: [], going: 0, drawn: 0, chosen: null };

views.explore = {
  begin() {
    for (const r of hello.releases) $("explore-release").append(el("option", { value: r.name }, r.name));
    for (const n of [0, 1, 2, 3, 4, -1]) $("explore-bound").append(el("option", { value: n }, n < 0 ? "any number" : n));
    $("explore-bug").addEventListener("change", () => { takeBug(); left(); });
    $("explore-scene").addEventListener("change", () => { $("explore-bug").value = ""; takeScene(); left(); });
    $("explore-form").addEventListener("submit", (e) => {
      e.preventDefault();
      search().catch(complain);
    });
    $("explore-stop").addEventListener("click", () => { hunt.going++; stopped("Stopped."); });
    $("schedule-file").addEventListener("change", (e) => e.target.files[0] && openSchedule(e.target.files[0]));
  },

  async show(state) {
    if (!hello) return;
    if (!hunt.list) {
      hunt.list = await question({ do: "explorable" });
      $("explore-bug").append(el("option", { value: "" }, "no bug: the kernel as it is"), ...hunt.list.bugs.map((b) => el("option", { value: b.name }, `${b.name}: ${b.about}`)));
      $("explore-scene").append(...hunt.list.scenarios.map((s) => el("option", { value: s.name }, s.name)));
      $("explore-bound").value = hunt.list.bound;
      $("explore-bug").value = "34";
      takeBug();
    }
    if (state.has("order") && state.get("order") !== hunt.shown) tell(await question({ do: "order", link: state.get("order") }), true);
    else if (state.has("bug") || state.has("scene")) {
      $("explore-bug").value = state.get("bug") ?? "";
      if ($("explore-bug").value) takeBug();
      if (state.has("scene")) $("explore-scene").value = state.get("scene");
      if ($("explore-scene").selectedIndex < 0) { $("explore-scene").selectedIndex = 0; complain(new Error("There is no such scenario: the address has been changed.")); }
      takeScene();
    }
  },
};

function takeBug() {
  const b = hunt.list.bugs.find((x) => x.name === $("explore-bug").value);
  $("explore-release").value = b?.profile ?? hello.default;
  if (b) $("explore-scene").value = b.scenario;
  takeScene();
}

function takeScene() {
  const s = hunt.list.scenarios.find((x) => x.name === $("explore-scene").value);
  $("explore-about").textContent = s.about;
  $("explore-text").value = s.text;
}

// left forgets what is shown of another scenario.
function left() {
  hunt.going++;
  hunt.shown = null;
  $("fan").hidden = true;
  $("story").replaceChildren();
  stopped("");
  remember("explore", { bug: $("explore-bug").value, scene: $("explore-scene").value });
}

function stopped(text) {
  $("explore-stop").hidden = true;
  $("explore-far").textContent = text ? `${text} ${hunt.far ?? ""}` : "";
}

// search runs the orders in slices: between two of them the page answers.
async function search() {
  complain(null);
  left();
  const going = ++hunt.going;
  Object.assign(hunt, { orders: [], drawn: 0, far: "" });
  let bad = false;
  await question({ do: "explore", text: $("explore-text").value, profile: $("explore-release").value, bug: $("explore-bug").value, bound: Number($("explore-bound").value) });
  $("explore-stop").hidden = false;
  for (let n = 0; going === hunt.going; n++) {
    const x = await question({ do: "hunt" });
    if (going !== hunt.going) return;
    for (const o of x.orders) {
      hunt.lanes = [...(o.number ? hunt.lanes.slice(0, o.from) : []), ...o.lanes];
      hunt.orders.push({ ...o, all: hunt.lanes });
    }
    hunt.far = `${x.runs} orders tried, ${x.states} states, ${x.bad} ${x.bad === 1 ? "order ends" : "orders end"} badly.`;
    if (n % 5 === 0 || x.ended) $("explore-far").textContent = `${hunt.far} ${x.ended}`;
    if (x.orders.length) fan();
    const first = !bad && x.orders.find((o) => o.bad);
    if (first) {
      bad = true;
      await openOrder(first.number);
    }
    if (x.ended) {
      $("explore-stop").hidden = true;
      const dead = $("fan").querySelector(".dead"), view = $("fan").querySelector(".fan");
      if (dead) view.scrollTop += dead.getBoundingClientRect().bottom - view.getBoundingClientRect().bottom + 60;
      return;
    }
  }
}

// laneClass names the colour of a lane in the style sheet.
const laneClass = (lane) => (lane.startsWith("worker") ? "lane-w" : `lane-${"0123".includes(lane[3] ?? "x") ? lane[3] : "0"}`);

const SVG = (name, attributes, ...inside) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...inside);
  return e;
};

// fan draws the orders: a line for each, from where it leaves the one above; bad ones end in red.
function fan() {
  const box = $("fan"), most = Math.max(...hunt.orders.map((o) => o.all.length));
  const high = hunt.orders.length > 60 ? 4 : 9, wide = 1000 / (most + 2);
  const y = (n) => 8 + n * high;
  const picture = SVG("svg", { viewBox: `0 0 1000 ${y(hunt.orders.length) + 8}`, role: "img", "aria-label": `A fan of ${hunt.orders.length} orders; those that end badly are in the list below` });
  const rows = []; // the order in which each step of the line above was drawn
  hunt.orders.forEach((o, n) => {
    const g = SVG("g", { class: o.bad ? "dead" : "alive" });
    const x0 = o.from * wide, above = n && rows[Math.max(o.from - 1, 0)] !== undefined ? rows[Math.max(o.from - 1, 0)] : n;
    if (above !== n) g.append(SVG("path", { class: "branch", d: `M${x0} ${y(above)} C${x0 + wide / 2} ${y(above)} ${x0} ${y(n)} ${x0 + wide} ${y(n)}` }));
    for (let i = o.from; i < o.all.length;) {
      let j = i;
      while (j < o.all.length && o.all[j] === o.all[i]) j++;
      g.append(SVG("line", { class: laneClass(o.all[i]), x1: (i + (i === o.from && above !== n ? 1 : 0)) * wide, x2: j * wide, y1: y(n), y2: y(n), "stroke-width": Math.max(2, high - 3) }));
      i = j;
    }
    rows.length = Math.min(rows.length, o.from);
    while (rows.length < o.all.length) rows.push(n);
    g.append(SVG("circle", { cx: (o.all.length + 0.6) * wide, cy: y(n), r: o.bad ? Math.max(4, high / 2) : 1.5 }));
    g.append(SVG("title", {}, o.bad ? `${o.verdict}: ${o.reason}` : "ends well"));
    g.addEventListener("click", () => openOrder(o.number, true).catch(complain));
    picture.append(g);
  });
  const bad = hunt.orders.filter((o) => o.bad);
  const names = [...new Set(hunt.orders.flatMap((o) => o.all))].sort();
  box.replaceChildren(el("h3", {}, "The orders"),
    el("p", { class: "key" }, ...names.map((l) => el("span", { class: laneClass(l) }, l)), ` One line is one order, from left to right. ${bad.length ? "Red ends badly. " : ""}Click a line to open it.`),
    el("div", { class: "fan", tabindex: 0, role: "region", "aria-label": "The fan of orders" }, picture),
    bad.length ? el("details", {}, el("summary", {}, `Orders that end badly: ${bad.length}`),
      el("ol", {}, ...bad.slice(0, 50).map((o) => el("li", {}, el("button", { type: "button", onclick: () => openOrder(o.number).catch(complain) }, `${o.verdict}: ${o.reason}`))))) : "");
  box.hidden = false;
}

// openOrder tells an order of the search: a bad one is made smaller first, unless it is wanted whole.
async function openOrder(number, whole) {
  tell(await question({ do: "order", number, whole: !!whole }));
}

// tell shows an order, a lane for each CPU. own: it has brought its scenario with it.
function tell(s, own) {
  hunt.shown = s.link;
  if (own) {
    $("explore-bug").value = hunt.list.bugs.some((b) => b.name === s.bug) ? s.bug : "";
    $("explore-release").value = s.profile;
    $("explore-scene").value = s.scenario;
    $("explore-about").textContent = s.about;
    $("explore-text").value = s.text;
    $("fan").hidden = true;
    $("explore-far").textContent = "";
  }
  if (place().view === "explore") remember("explore", { order: s.link });
  const save = URL.createObjectURL(new Blob([s.file], { type: "text/plain" }));
  // A lane is behind from a write of another lane until it has synchronized.
  const behind = new Set();
  const rows = s.steps.map((t, i) => {
    if (t.kind === "write") for (const l of s.lanes) if (l !== t.lane) behind.add(l);
    const late = new Set(behind);
    if (t.kind === "sync") { if (t.what.startsWith("ack")) behind.delete(t.lane); else behind.clear(); }
    return el("tr", { class: i === s.steps.length - 1 && s.bad ? "dead" : "" }, el("th", { scope: "row" }, i + 1),
      ...s.lanes.map((l) => el("td", { class: `${l === t.lane ? t.kind || "step" : ""}${late.has(l) ? " behind" : ""}` }, l === t.lane ? t.what : "")));
  });
  $("story").replaceChildren(el("h3", { id: "story-title", tabindex: -1 }, s.bad ? `This order ends badly: ${s.verdict}` : "This order ends well"),
    el("p", s.bad ? { class: "wrong" } : {}, s.bad ? `${s.reason}.` : "Nothing goes wrong.", s.says ? ` ${s.says}` : ""),
    el("p", {}, s.scenario, s.bug ? `, with bug ${s.bug} brought back` : "", `, rules of ${s.profile}; `, el("a", { href: save, download: `${s.scenario}.schedule` }, "the schedule as a file"),
      ", which ", el("code", {}, `kprobelab explore --replay ${s.scenario}.schedule`), " runs. The address has this order."),
    el("p", { class: "key" }, el("span", { class: "write" }, "text changes"), el("span", { class: "sync" }, "synchronizes"), el("span", { class: "stale" }, "fetches older bytes"), el("span", { class: "behind" }, "has not seen a change yet")),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "story-title" }, el("table", { class: "story" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "step"), ...s.lanes.map((l) => el("th", { scope: "col", class: laneClass(l) }, l)))), el("tbody", {}, ...rows))));
}

// openSchedule opens a schedule's file.
async function openSchedule(file) {
  complain(null);
  try {
    if (file.size > 2 ** 22) throw new Error(`${file.name} is too long for a schedule.`);
    const s = await question({ do: "order" }, await file.arrayBuffer());
    hunt.shown = null;
    location.hash = `explore?order=${s.link}`;
  } catch (e) {
    complain(e);
  }
}
