// Lessons: a machine to poke, a prediction, the run that answers it, an explanation, and a variation.
// A lesson is a file (docs/lessons.md): the program's own, served ones, and those that are dropped.

// kept reads which lessons are done from an earlier visit; a browser may keep nothing.
function kept() {
  try {
    return new Set(JSON.parse(localStorage.getItem("lessons") ?? "[]").filter((x) => typeof x === "string"));
  } catch {
    return new Set();
  }
}

function keep() {
  try {
    localStorage.setItem("lessons", JSON.stringify([...lesson.done]));
  } catch { /* then they are done for this visit */ }
}

// misses are the wrong predictions; varying: the reader does the variation.
const lesson = { list: null, n: null, machine: null, done: kept(), misses: 0, answered: false, varying: false, playing: 0 };

views.lesson = {
  begin() {
    lesson.machine = new Machine($("lesson-machine"), (m) => {
      complain(null);
      if (place().view !== "lesson") return;
      if (!lesson.varying) remember("lesson", { n: lesson.n + 1, ...m.way(), by: m.by === lesson.list[lesson.n].by ? "" : m.by, schedule: m.view.schedule === (m.scenario.start ?? "") ? "" : m.view.schedule, sub: m.view.sub < 0 ? "" : m.view.sub });
      else judged().catch(complain);
    });
    $("lesson-file").addEventListener("change", (e) => e.target.files[0] && openLesson(e.target.files[0]));
  },

  async show(state) {
    if (!hello) return;
    lesson.list ??= await question({ do: "lessons" }).then(withServed);
    const text = state.get("n") ?? "1";
    const n = /^\d{1,3}$/.test(text) ? Number(text) - 1 : -1;
    const known = lesson.list[n] !== undefined;
    if (lesson.n !== (known ? n : 0)) Object.assign(lesson, { n: known ? n : 0, misses: 0, answered: false });
    lesson.varying = false;
    lesson.playing++;
    const l = lesson.list[lesson.n];
    listed();
    $("lesson-where").textContent = `Lesson ${lesson.n + 1} of ${lesson.list.length}: choose another`;
    asked(l);
    lesson.machine.goBy(state, l.by);
    await lesson.machine.show({ ...l.scenario, image: "", lead: l.lead ?? "", start: l.start ?? "" }, known ? state.get("schedule") ?? l.start ?? "" : l.start ?? "", known ? sub(state.get("sub")) : -1);
    if (!known) throw new Error(`There is no lesson "${text}": the address has been changed.`);
  },
};

// withServed adds the lessons of serve --lessons.
async function withServed(list) {
  if (!document.documentElement.dataset.served) return list;
  const names = await fetch("lessons").then((r) => (r.ok ? r.json() : [])).catch(() => []);
  for (const [i, name] of names.entries()) {
    try {
      list.push(await question({ do: "droplesson", name }, await (await fetch(`lesson/${i}`)).arrayBuffer()));
    } catch (e) {
      complain(e);
    }
  }
  return list;
}

function listed() {
  $("lesson-list").replaceChildren(...lesson.list.map((l, i) => el("li", {},
    el("a", { href: `#lesson?n=${i + 1}`, "aria-current": i === lesson.n ? "page" : null }, l.title), lesson.done.has(l.id) ? " ✓ done" : "")));
}

// asked shows the text and the question, and what the reader has come to.
function asked(l) {
  $("lesson-text").replaceChildren(el("h3", {}, `${lesson.n + 1}. ${l.title}`), ...l.text.map((t) => el("p", {}, t)));
  $("lesson-question").textContent = l.question;
  $("predict").hidden = false;
  $("answers").replaceChildren(...l.answers.map((a, i) => el("button", { type: "button", onclick: () => predicted(i).catch(complain) }, a.text)));
  if (lesson.answered) explained(l);
  else {
    verdict("", "");
    $("explain").replaceChildren();
    $("vary").replaceChildren();
  }
}

function verdict(kind, ...text) {
  $("verdict").className = kind;
  $("verdict").replaceChildren(...text);
  if (text.some((x) => x)) seen($("verdict"));
}

// seen scrolls the text beside the machine until an element is in sight: on a laptop it is longer than the window.
function seen(e) {
  e.scrollIntoView({ block: "nearest" });
}

// predicted asks the machine about a prediction. A right one is played; after two wrong ones the reader may see it.
async function predicted(i) {
  const n = lesson.n, l = lesson.list[n];
  const c = await question({ do: "predict", of: l, answer: i });
  if (n !== lesson.n) return;
  $("answers").children[i].className = c.right ? "was-right" : "was-wrong";
  if (!c.right) {
    lesson.misses++;
    verdict("wrong", c.why, " ", lesson.misses > 1 ? el("button", { type: "button", id: "show-me", onclick: () => played(l, c).catch(complain) }, "Show me") : "");
    return;
  }
  verdict("right", "Right. ", c.why);
  await played(l, c, true);
}

// played plays the machine to the moment of the question, and explains.
async function played(l, c, right) {
  const n = lesson.n, turn = ++lesson.playing, m = lesson.machine;
  if (!right) {
    $("answers").children[c.answer].className = "was-right";
    verdict("", l.answers[c.answer].text, ". ", l.answers[c.answer].why);
  }
  m.by = l.by;
  m.who = "turn";
  m.stop();
  await m.begin();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  for (let i = 0; i < 100 && !still && turn === lesson.playing && (m.view.schedule !== c.schedule || m.view.sub !== c.sub); i++) {
    await new Promise((done) => setTimeout(done, i ? 500 : 0));
    if (turn !== lesson.playing || !await m.forward()) break;
  }
  if (turn !== lesson.playing || n !== lesson.n) return;
  if (m.view.schedule !== c.schedule || m.view.sub !== c.sub) await m.ask({ schedule: c.schedule, sub: c.sub });
  lesson.answered = true;
  lesson.done.add(l.id);
  keep();
  listed();
  explained(l);
}

function explained(l) {
  const next = lesson.list[lesson.n + 1];
  $("explain").replaceChildren(...l.explain.map((t) => el("p", {}, t)));
  $("vary").replaceChildren(el("h4", {}, "Now you"), el("p", {}, l.vary.text), el("p", {}, el("button", { type: "button", id: "try", onclick: () => vary(l).catch(complain) }, "Try it")),
    el("div", { id: "vary-form" }),
    next ? el("p", {}, el("a", { href: `#lesson?n=${lesson.n + 2}` }, `Next lesson: ${next.title}`)) : el("p", {}, "This was the last lesson. ", el("a", { href: "#watch" }, "Watch"), " has a machine without questions."));
  seen($("try"));
  seen($("verdict"));
}

// vary gives the reader the machine, with the parts that may be changed.
async function vary(l) {
  const s = { ...l.scenario }, can = l.vary.change ?? [];
  lesson.varying = true;
  lesson.playing++;
  lesson.reached = false;
  let typing;
  const again = async () => {
    complain(null);
    try {
      await lesson.machine.show({ ...s, image: "", lead: s.lead ?? "", start: "" }, can.length ? "" : l.start ?? "", -1);
    } catch (e) {
      complain(e);
    }
  };
  const changed = (part, value) => {
    s[part] = value;
    delete s.lead;
    clearTimeout(typing);
    typing = setTimeout(again, 400);
  };
  const field = {
    probes: () => el("p", {}, el("label", { for: "vary-probes" }, "Probes"), el("textarea", { id: "vary-probes", rows: 2, spellcheck: "false", oninput: (e) => changed("probes", e.target.value) }, s.probes)),
    calls: () => el("p", {}, el("label", { for: "vary-calls" }, "Calls"), el("textarea", { id: "vary-calls", rows: 2, spellcheck: "false", oninput: (e) => changed("calls", e.target.value) }, s.calls)),
    careless: () => el("p", {}, el("label", {}, el("input", { type: "checkbox", id: "vary-careless", checked: s.careless, onchange: (e) => changed("careless", e.target.checked) }), " write the jump carelessly, without waiting")),
    release: () => el("p", {}, el("label", { for: "vary-release" }, "Rules of Linux "), (() => {
      const list = el("select", { id: "vary-release", onchange: (e) => changed("release", e.target.value) }, ...hello.releases.map((r) => el("option", { value: r.name }, r.name)));
      list.value = s.release;
      return list;
    })()),
  };
  const way = { ...l.scenario, ...Object.fromEntries(Object.entries(l.vary.way).filter(([k, v]) => v !== "" || k === "careless")) };
  way.careless = !!l.vary.way.careless;
  $("vary-form").replaceChildren(...can.map((part) => field[part]()),
    el("p", { id: "goal", role: "status" }, "The machine says when it is reached: step it by Forward."),
    el("p", {}, el("button", { type: "button", id: "show-way", onclick: () => showWay(l, way).catch(complain) }, "Show me")));
  if (!can.length) s.lead = way.lead ?? "";
  await again();
}

// judged asks whether the reader's machine has reached the goal.
async function judged() {
  const l = lesson.list[lesson.n], m = lesson.machine;
  if (lesson.reached || !$("goal")) return;
  const { probes, calls, release, careless } = m.scenario;
  const g = await question({ do: "goal", scenario: { probes, calls, release, careless: !!careless }, schedule: m.view.schedule, sub: m.view.sub, by: m.by, goal: l.vary.goal });
  if (!g.reached || !$("goal")) return;
  lesson.reached = true;
  $("goal").className = "right";
  $("goal").textContent = `Reached. ${l.vary.done}`;
  seen($("goal"));
  lesson.done.add(`${l.id} varied`);
  keep();
}

// showWay plays a way to the goal.
async function showWay(l, way) {
  const turn = ++lesson.playing, m = lesson.machine;
  for (const part of ["probes", "calls", "release"]) if ($(`vary-${part}`)) $(`vary-${part}`).value = way[part];
  if ($("vary-careless")) $("vary-careless").checked = way.careless;
  m.by = l.by;
  m.who = "turn";
  await m.show({ ...way, image: "", lead: way.lead ?? "", start: "" }, "", -1);
  for (let i = 0; i < 100 && turn === lesson.playing && !lesson.reached; i++) {
    if (!await m.forward()) break;
    await judged();
    await new Promise((done) => setTimeout(done, 300));
  }
}

// openLesson opens a file that was chosen or dropped, once the program has played it.
async function openLesson(file) {
  complain(null);
  try {
    if (file.size > 2 ** 20) throw new Error(`${file.name} is too long for a lesson.`);
    const l = await question({ do: "droplesson", name: file.name }, await file.arrayBuffer());
    lesson.list ??= await question({ do: "lessons" }).then(withServed);
    const n = lesson.list.findIndex((x) => x.id === l.id);
    if (n < 0) lesson.list.push(l);
    else lesson.list[n] = l;
    lesson.n = null;
    location.hash = `lesson?n=${(n < 0 ? lesson.list.length : n + 1)}`;
    await turn();
  } catch (e) {
    complain(e);
  }
}
