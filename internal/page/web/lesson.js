// Lessons: each one machine, one question, and one answer, which the machine checks.

// kept reads which lessons are done from an earlier visit; a browser may keep nothing.
function kept() {
  try {
    return new Set(JSON.parse(localStorage.getItem("lessons done") ?? "[]").filter(Number.isInteger));
  } catch {
    return new Set();
  }
}

function keep() {
  try {
    localStorage.setItem("lessons done", JSON.stringify([...lesson.done]));
  } catch { /* then they are done for this visit */ }
}

const lesson = { list: null, n: null, machine: null, done: kept() };

views.lesson = {
  begin() {
    lesson.machine = new Machine($("lesson-machine"), (m) => {
      complain(null);
      if (place().view !== "lesson") return;
      remember("lesson", { n: lesson.n + 1, ...m.way(), by: m.by === lesson.list[lesson.n].by ? "" : m.by, schedule: m.view.schedule === (m.scenario.start ?? "") ? "" : m.view.schedule, sub: m.view.sub < 0 ? "" : m.view.sub });
    });
    $("answer-form").addEventListener("submit", (e) => {
      e.preventDefault();
      checked().catch(complain);
    });
  },

  async show(state) {
    if (!hello) return;
    lesson.list ??= await question({ do: "lessons" });
    const text = state.get("n") ?? "1";
    const n = /^\d$/.test(text) ? Number(text) - 1 : -1;
    const known = lesson.list[n] !== undefined;
    if (lesson.n !== (known ? n : 0)) {
      lesson.n = known ? n : 0;
      $("answer").value = $("verdict").textContent = "";
      $("verdict").className = "";
    }
    const l = lesson.list[lesson.n];
    listed();
    $("lesson-text").replaceChildren(el("h3", {}, `${lesson.n + 1}. ${l.title}`), ...l.text.map((t) => el("p", {}, t)));
    $("lesson-question").textContent = l.question;
    $("answer-form-is").textContent = `(${l.form})`;
    $("answer-form").hidden = false;
    lesson.machine.goBy(state, l.by);
    await lesson.machine.show({ ...l.scenario, image: "", lead: l.lead, start: l.start }, known ? state.get("schedule") ?? l.start : l.start, known ? sub(state.get("sub")) : -1);
    if (!known) throw new Error(`There is no lesson "${text}": the address has been changed.`);
  },
};

function listed() {
  $("lesson-list").replaceChildren(...lesson.list.map((l, i) => el("li", {},
    el("a", { href: `#lesson?n=${i + 1}`, "aria-current": i === lesson.n ? "page" : null }, l.title), lesson.done.has(i) ? " ✓ done" : "")));
}

async function checked() {
  const n = lesson.n;
  const c = await question({ do: "check", lesson: n, answer: $("answer").value });
  if (n !== lesson.n) return;
  $("verdict").className = c.right ? "right" : "wrong";
  $("verdict").textContent = (c.right ? "Right. " : "") + c.says;
  if (c.right) {
    lesson.done.add(n);
    keep();
    listed();
    if (lesson.list[n + 1]) $("verdict").append(" ", el("a", { href: `#lesson?n=${n + 2}` }, `Next lesson: ${lesson.list[n + 1].title}`));
  }
}
