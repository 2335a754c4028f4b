// What is on the page before the program is: the texts of the lessons, a picture that moves, and what a reader types.

// typedEarly are fields that a reader has filled in, with a text or a file, before the program could answer.
const typedEarly = new Map();
const keepTyped = (e) => e.isTrusted && e.target.id && !document.body.dataset.ready && typedEarly.set(e.target.id, e.target.value);
addEventListener("input", keepTyped, true);

// ready gives what was typed to the program that is there now.
addEventListener("program", () => {
  removeEventListener("input", keepTyped, true);
  $("lesson-early").remove();
  $("early-stage")?.remove();
  for (const [id, value] of typedEarly) {
    const field = $(id);
    if (!field) continue;
    if (field.type !== "file") field.value = value;
    field.dispatchEvent(new Event(field.type === "file" ? "change" : "input", { bubbles: true }));
  }
});

// earlyLesson shows the text of the lesson in the address.
function earlyLesson() {
  const n = place().view === "lesson" ? place().state.get("n") ?? "1" : "";
  for (const a of document.querySelectorAll("#lesson-early article")) a.hidden = a.dataset.lesson !== n;
}

// earlyStage brings the picture to the place where the view's machine or answer will be.
function earlyStage() {
  const figure = $("early-stage"), view = place().view;
  if (!figure) return;
  const box = $({ watch: "machine", lesson: "lesson-machine", film: "film-machine" }[view]), beside = $({ ask: "beside", explore: "fan" }[view]);
  if (box && figure.parentElement !== box) box.append(figure);
  if (beside && figure.nextElementSibling !== beside) beside.before(figure);
}

for (const shows of [earlyLesson, earlyStage]) {
  addEventListener("hashchange", shows);
  shows();
}
