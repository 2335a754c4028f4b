// What is on the page before the program is: the texts of the lessons, and what a reader types.

// typedEarly are fields that a reader has filled in before the program could answer.
const typedEarly = new Map();
const keepTyped = (e) => e.isTrusted && e.target.id && typedEarly.set(e.target.id, e.target.value);
addEventListener("input", keepTyped, true);

// ready gives what was typed to the program that is there now.
addEventListener("program", () => {
  removeEventListener("input", keepTyped, true);
  $("lesson-early").remove();
  for (const [id, value] of typedEarly) {
    const field = $(id);
    if (!field || field.type === "file") continue;
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
});

// earlyLesson shows the text of the lesson in the address.
function earlyLesson() {
  const n = place().view === "lesson" ? place().state.get("n") ?? "1" : "";
  for (const a of document.querySelectorAll("#lesson-early article")) a.hidden = a.dataset.lesson !== n;
}
addEventListener("hashchange", earlyLesson);
earlyLesson();
