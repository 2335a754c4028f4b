// Watch: a machine of one's own.

const watch = { machine: null };

views.watch = {
  begin() {
    for (const [i, s] of hello.scenarios.entries()) $("scenario").append(el("option", { value: i }, s.name));
    $("scenario").append(el("option", { value: "" }, "the input below"));
    $("watch-release").append(el("option", { value: "" }, "its own"));
    for (const r of hello.releases) $("watch-release").append(el("option", { value: r.name }, r.name));
    watch.machine = new Machine($("machine"), remembered);
    $("scenario").addEventListener("change", () => {
      const s = hello.scenarios[$("scenario").value];
      if (s) fill({ ...s, release: $("watch-release").value || hello.default, image: "" });
      again();
    });
    $("watch-image").addEventListener("input", () => { watch.build = ""; $("watch-release").value = $("watch-image").value ? "" : hello.default; });
    let typing;
    for (const id of ["probes", "calls", "watch-image", "watch-release", "careless"]) {
      $(id).addEventListener("input", () => {
        $("scenario").value = "";
        clearTimeout(typing);
        // Another release, or a careless jump, takes the same order, as far as it goes.
        typing = setTimeout(["watch-release", "careless"].includes(id) ? alike : again, 400);
      });
    }
    $("watch-form").addEventListener("submit", (e) => e.preventDefault());
  },

  async show(state) {
    if (!hello) return;
    const own = state.has("calls");
    const s = own ? Object.fromEntries(["probes", "calls", "release", "image", "build"].map((k) => [k, state.get(k) ?? ""])) : { ...hello.scenarios[0], image: "" };
    s.careless = own ? state.has("careless") : false;
    if (!s.image) s.release ||= hello.default;
    fill(s);
    $("scenario").value = String(hello.scenarios.findIndex((x) => x.probes === s.probes && x.calls === s.calls && !!x.careless === s.careless)).replace("-1", "");
    watch.machine.goBy(state, "protocol");
    await watch.machine.show(written(), state.get("schedule") ?? "", sub(state.get("sub")));
  },
};

// sub is the number of an event in an address; a text that is no number means no event.
const sub = (text) => (text === null ? -1 : /^\d{1,3}$/.test(text) ? Number(text) : 1e6);

function fill(s) {
  $("probes").value = s.probes;
  $("calls").value = s.calls;
  $("careless").checked = !!s.careless;
  $("watch-release").value = s.release;
  watch.release = s.release;
  watch.build = s.image ? s.build ?? "" : "";
  images(s.image);
}

// images lists the kernels that can be run: the guest kernel, the open image, and the one
// that an address names.
function images(chosen) {
  const names = [ask.open?.name, chosen].filter((name, i, all) => name && all.indexOf(name) === i);
  $("watch-image").replaceChildren($("watch-image").options[0], ...names.map((name) => el("option", { value: name }, name)));
  $("watch-image").value = chosen;
}

const written = () => ({
  probes: $("probes").value, calls: $("calls").value, careless: $("careless").checked, image: $("watch-image").value, build: built($("watch-image").value),
  lead: hello.scenarios[$("scenario").value]?.lead ?? "",
  release: $("watch-release").selectedIndex < 0 ? watch.release : $("watch-release").value, // a release that there is not is complained about
});

// built is an image's build id: the open image's, or the one that the address names.
const built = (name) => (name === "" ? "" : watch.build || (ask.open?.name === name ? ask.open.build : ""));

async function again() {
  complain(null);
  try {
    await watch.machine.show(written(), "", -1);
  } catch (e) {
    complain(e);
  }
}

async function alike() {
  complain(null);
  try {
    const schedule = watch.machine.view?.schedule ?? "";
    await watch.machine.show(written(), schedule, -1, true);
  } catch (e) {
    complain(e);
  }
}

function remembered(m) {
  complain(null);
  if (place().view !== "watch") return;
  const s = m.scenario;
  remember("watch", { probes: s.probes, calls: s.calls, release: s.release, image: s.image, build: s.build, careless: s.careless ? 1 : "", ...m.way(), schedule: m.view.schedule, sub: m.view.sub < 0 ? "" : m.view.sub });
}
