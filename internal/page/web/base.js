// Helpers of all views: elements, the address, errors.

const $ = (id) => document.getElementById(id);

// el makes an element: el("td", {class: "x", onclick: f}, "text", other).
function el(name, attributes, ...inside) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes ?? {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v !== undefined && v !== null) e.setAttribute(k, v);
  }
  e.append(...inside.filter((x) => x !== undefined && x !== null && x !== false));
  return e;
}

function complain(e) {
  $("error").textContent = e ? e.message ?? String(e) : "";
  $("error").hidden = !e;
}

// offset is such as +3 or +0x1e, as perf and the kernel's log write it; below ten both are the same.
const offset = (n) => (n < 10 ? (n < 0 ? `${n}` : `+${n}`) : `+0x${n.toString(16)}`);

// A view has show(state), which is called when the address changes. The address is
// #VIEW?name=value&…
const views = {};

// place is the address's view and state.
function place() {
  const [view, rest] = location.hash.slice(1).split(/\?(.*)/s);
  return { view: views[view] ? view : "ask", known: view === "" || !!views[view], state: new URLSearchParams(rest ?? "") };
}

// remember puts a view's state into the address, without a step of the history, once what it belongs to is drawn: a browser takes
// longer for that than for many a step.
let remembering = null;
function remember(view, state) {
  if (!remembering) setTimeout(() => {
    const put = remembering;
    remembering = null;
    if (put?.view === place().view) write(put);
  }, 0);
  remembering = { view, state };
}

function write({ view, state }) {
  const text = new URLSearchParams(Object.entries(state).filter(([, v]) => v !== "" && v !== undefined && v !== null)).toString();
  history.replaceState(null, "", "#" + view + (text ? "?" + text : ""));
  dispatchEvent(new CustomEvent("remembered", { detail: { view, state } }));
}

// shown is the view that is on the page.
let shown;

async function turn() {
  const { view, known, state } = place();
  complain(null);
  document.title = `${document.querySelector(`nav a[data-view=${view}]`).textContent} – kprobelab`;
  const came = shown !== undefined && shown !== view;
  shown = view;
  for (const name of Object.keys(views)) {
    $(name).hidden = name !== view;
    const link = document.querySelector(`nav a[data-view=${name}]`);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (came) {
    $("live").textContent = ""; // it was of the view before
    $(`${view}-title`).focus();
  }
  try {
    await views[view].show(state);
    if (!known) throw new Error("There is no such place on this page: the address has been changed.");
  } catch (e) {
    complain(e);
  }
}

// there: the program has answered, and the view of the address is shown.
const there = new Promise((done) => addEventListener("program", done));

let hello;
async function begin() {
  $("status").textContent = "Starting …";
  turn(); // the page is there before the program is
  try {
    await start();
    hello = await question({ do: "hello" });
    for (const v of Object.values(views)) v.begin?.();
    $("status").textContent = "Ready";
    document.body.dataset.ready = "1";
    await turn();
    dispatchEvent(new Event("program"));
    document.body.dataset.shown = performance.now();
  } catch (e) {
    $("status").textContent = "";
    complain(new Error(`The program does not start here: ${e.message ?? e}. A newer browser may help.`));
  }
}
addEventListener("hashchange", () => { remembering = null; turn(); });

// The link to the content moves the focus, and leaves the address, which is the page's state.
$("skip").addEventListener("click", (e) => {
  e.preventDefault();
  $("main").focus();
});
