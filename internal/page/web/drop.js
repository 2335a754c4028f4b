// Files that are dropped on the page: a film, a schedule and a lesson go to their views, by the file's first bytes, and all
// others to Ask.

// takers say by a file's name and beginning that they take it.
const takers = [
  { is: (name, head) => head.startsWith("kprobelab film "), open: (file) => openFilm(file) },
  { is: (name, head) => /^schedule \S/.test(head), open: (file) => openSchedule(file) },
  { is: (name, head) => /^\s*\{[^]*"lesson"/.test(head) || /\.json$/i.test(name), open: (file) => openLesson(file) },
];

addEventListener("dragover", (e) => { e.preventDefault(); document.body.classList.add("over"); });
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", async (e) => {
  e.preventDefault();
  document.body.classList.remove("over");
  const file = e.dataTransfer.files[0];
  if (!file) return;
  await there; // a file that comes before the program waits for it
  const head = await file.slice(0, 256).text();
  const taker = takers.find((t) => t.is(file.name, head));
  if (taker) return taker.open(file);
  if (place().view !== "ask") await new Promise((done) => { // the view is turned to, then it gets the file
    addEventListener("hashchange", done, { once: true });
    location.hash = "ask";
  });
  opened(file);
}, true);
