// A machine on the page: its picture, and the buttons that move it. Watch has one, and
// so has each lesson.

// mostApart is the most steps that are shown each on its own.
const mostApart = 400;

// named writes a schedule in words.
const named = (schedule) => (schedule.match(/[a-z]\d*/g) ?? []).map((p) => {
  const n = Number(p.slice(1) || 1);
  return `${{ m: "module", w: "worker" }[p[0]] ?? `CPU ${"abcd".indexOf(p[0])}`}, ${n} ${n === 1 ? "step" : "steps"}`;
}).join("; ");

// Machine shows a machine in an element. changed(machine) is called after each move.
class Machine {
  constructor(box, changed) {
    Object.assign(this, { box, changed, scenario: null, view: null, who: "turn", by: "protocol", turn: 0, playing: null });
    // ahead are the places that Back has left, the nearest last: Forward comes back to them. undo is
    // the place before the order was changed.
    this.ahead = [];
    this.undo = null;
    this.note = "";
    // apart: each step is a part of the order of its own.
    this.apart = false;
    // folded are the details that the reader has closed; on a narrow page all are.
    this.folded = new Set();
    this.narrow = matchMedia("(max-width: 40rem)").matches;
    // drawn has the data from which each part of the picture was drawn.
    this.drawn = new Map();
    // The controls and the caption stay in sight while the code scrolls. The caption is one element
    // for good: only then is a change of its text announced.
    this.parts = ["controls", "caption", "events", "code", "lanes", "order", "log"].map((name) => ({ name, at: el(name === "caption" ? "p" : "div", name === "caption" ? { class: "caption", role: "status" } : {}) }));
    const [controls, caption, ...rest] = this.parts.map((p) => p.at);
    box.replaceChildren(el("div", { class: "stay" }, controls, caption), ...rest);
  }

  // show goes to a state of a scenario: {probes, calls, release, careless, image}. If
  // there is no such state, it shows an error, and goes to the beginning.
  async show(scenario, schedule, sub, loose) {
    this.stop();
    this.scenario = scenario;
    this.fresh();
    try {
      await this.ask({ schedule, sub, loose: !!loose });
    } catch (e) {
      const start = scenario.start ?? "";
      if (schedule !== start || sub >= 0) await this.ask({ schedule: start, sub: -1 }).catch(() => {});
      throw e;
    }
  }

  async ask(q) {
    const turn = ++this.turn;
    const v = await question({ do: "watch", ...this.scenario, by: this.by, ...q });
    if (turn !== this.turn) return; // a later question is under way
    this.view = v;
    this.draw();
    this.changed(this);
  }

  // way is the mode and the chosen CPU for the address, without what is usual.
  way() {
    return { by: this.by === "protocol" ? "" : this.by, who: this.who === "turn" ? "" : this.who };
  }

  // goBy takes them from the address.
  goBy(state, by) {
    this.by = { protocol: "protocol", instruction: "instruction" }[state.get("by")] ?? by;
    this.who = /^[abcdmw]$/.test(state.get("who") ?? "") ? state.get("who") : "turn";
  }

  // fresh forgets the places that Back has left, and the order before.
  fresh() {
    this.ahead = [];
    this.undo = null;
    this.note = "";
  }

  here() {
    return { schedule: this.view.schedule, sub: this.view.sub };
  }

  move(q) {
    return this.ask({ schedule: this.view.schedule, sub: this.view.sub, ...q });
  }

  // forward lets who step. Without it, the machine comes back to the place that Back has left; if
  // there is none, the chosen CPU steps, or everybody in turn.
  async forward(who) {
    this.note = "";
    const next = who ? null : this.ahead.pop();
    if (next) {
      await this.ask(next);
      return true;
    }
    this.fresh();
    await this.move({ move: "forward", who: who ?? (this.who === "turn" ? "" : this.who) });
    if (!this.view.moved) this.say("Nobody has anything left to do here: go back, begin again, or let the module unregister its probes.");
    return this.view.moved;
  }

  async back() {
    const from = this.here();
    const start = this.scenario.start ?? "";
    this.note = "";
    if (from.schedule === start && from.sub < 0) return false;
    await this.move({ move: "back" });
    if (!this.view.schedule.startsWith(start)) await this.ask({ schedule: start, sub: -1 });
    this.ahead.push(from);
    return true;
  }

  begin() {
    this.fresh();
    return this.ask({ schedule: this.scenario.start ?? "", sub: -1 });
  }

  say(text) {
    this.note = text;
    this.draw();
  }

  // steps says whether Forward has anything to do.
  steps() {
    if (this.ahead.length > 0 || this.who === "turn") return this.ahead.length > 0 || this.view.next !== "";
    const v = this.view;
    return v.next === this.who || { m: !!v.module, w: v.worker }[this.who] || !!v.cpus["abcd".indexOf(this.who)]?.can;
  }

  play() {
    if (this.playing) return this.stop();
    const go = async () => {
      let moved = false;
      try {
        moved = await this.forward();
      } catch (e) {
        complain(e);
      }
      if (this.playing && moved) this.playing = setTimeout(go, this.by === "protocol" ? 900 : 250);
      else this.stop();
    };
    this.playing = setTimeout(go, 0);
    this.draw();
  }

  stop() {
    if (!this.playing) return;
    clearTimeout(this.playing);
    this.playing = null;
    if (this.view) this.draw();
  }

  // draw brings the picture up to date, and keeps the focus where it was.
  draw() {
    const focus = this.focus ?? document.activeElement?.closest?.("[data-key]")?.dataset.key;
    for (const p of this.parts) this[p.name](p.at);
    if (focus && document.activeElement?.dataset.key !== focus) this.box.querySelector(`[data-key="${focus}"]`)?.focus();
    this.focus = null;
  }

  // update draws a part anew if its data has changed.
  update(at, key, from, make) {
    const text = JSON.stringify(from);
    if (this.drawn.get(key) === text) return false;
    this.drawn.set(key, text);
    at.replaceChildren(...make());
    return true;
  }

  button(key, text, action, more) {
    // What cannot be pressed now keeps the focus, which a disabled button loses.
    const off = more?.disabled;
    return el("button", { type: "button", "data-key": key, onclick: () => !off && action().catch(complain), ...more, disabled: false, "aria-disabled": off ? "true" : null }, text);
  }

  select(key, label, options, value, chosen) {
    const s = el("select", { "data-key": key, onchange: (e) => chosen(e.target.value) }, ...options.map(([v, text]) => el("option", { value: v }, text)));
    s.value = value;
    return el("label", {}, label, " ", s);
  }

  controls(at) {
    const v = this.view;
    const who = [["turn", "everybody in turn"], ...v.cpus.map((c, i) => ["abcd"[i], c.name]), ["m", "the module"], ["w", "the worker"]];
    this.update(at, "controls", [v.steps, v.sub, v.cpus.length, !!this.playing, this.by, this.who, this.steps()], () => [
      el("div", { class: "controls", role: "toolbar", "aria-label": "Steps", onkeydown: (e) => this.key(e) },
        this.button("begin", "Begin again", () => this.begin()),
        this.button("back", "◀ Back", () => this.back(), { disabled: v.schedule === (this.scenario.start ?? "") && v.sub < 0 }),
        this.button("forward", "Forward ▶", () => this.forward(), { disabled: !this.steps() }),
        this.button("play", this.playing ? "Stop" : "Play", async () => this.play(), { disabled: !this.playing && !this.steps() }),
        this.select("by", "by", [["protocol", "steps of the protocol"], ["instruction", "instructions"]], this.by, (x) => { this.by = x; this.chosen(); }),
        this.select("who", "who steps", who, this.who, (x) => { this.who = x; this.chosen(); }),
        el("span", { class: "soft" }, `${v.steps} ${v.steps === 1 ? "step" : "steps"}`))]);
  }

  // chosen: steps are taken in another way from here.
  chosen() {
    this.ahead = [];
    this.draw();
    this.changed(this);
  }

  // caption says what is shown, in a sentence.
  caption(at) {
    const v = this.view, e = v.events[v.sub];
    const text = this.note || (e ? `${e.who}: ${e.text}` : v.did) || (v.steps ? `Step ${v.steps} is at its end.` : "Nobody has taken a step yet.");
    if (at.textContent !== text) at.textContent = text;
  }

  key(e) {
    if (e.target.tagName === "SELECT") return;
    const go = { ArrowRight: () => this.forward(), ArrowLeft: () => this.back(), Home: () => this.begin() }[e.key];
    if (!go) return;
    e.preventDefault();
    go().catch(complain);
  }

  // order shows the steps in order, with the CPU, worker or module of each; a part can be dragged to another place.
  order(at) {
    this.update(at, "order", [this.view.schedule, this.apart, this.undo], () => {
      const runs = (this.view.schedule.match(/[a-z]\d*/g) ?? []).map((p) => ({ who: p[0], n: Number(p.slice(1) || 1) }));
      const apart = this.apart && this.view.steps <= mostApart;
      const parts = apart ? runs.flatMap((p) => Array.from({ length: p.n }, () => ({ who: p.who, n: 1 }))) : runs;
      const list = el("ol", {}, ...parts.map((p, i) => this.part(parts, p, i, apart)));
      return [el("div", { class: "order" }, el("h3", {}, "Who ran, in order"),
        parts.length ? list : el("p", { class: "soft" }, "Nobody has taken a step yet."),
        this.view.steps > 1 ? el("p", { class: "soft" },
          el("label", {}, el("input", { type: "checkbox", "data-key": "apart", checked: this.apart, onchange: (e) => { this.apart = e.target.checked; this.draw(); } }), " every step apart"),
          this.apart && !apart ? ` (these are more than ${mostApart})` : "",
          ". Drag a part to another place, or use the arrow keys on it: the machine then runs in that order.") : "",
        this.undo ? el("p", {}, this.button("undo", "Undo the change of the order", () => this.undone())) : "")];
    });
  }

  part(parts, { who, n }, i, apart) {
    const name = { m: "module", w: "worker" }[who] ?? `CPU ${"abcd".indexOf(who)}`;
    let from = null;
    const target = (e) => document.elementFromPoint(e.clientX, e.clientY)?.closest(".order li");
    const mark = (li) => { for (const x of this.box.querySelectorAll(".order li.target")) x.classList.remove("target"); li?.classList.add("target"); };
    return el("li", { class: `who-${who}` }, el("button", {
      type: "button", "data-key": `part${i}`, tabindex: i === 0 ? 0 : -1, "aria-label": `${name}, ${n} ${n === 1 ? "step" : "steps"}; left and right: earlier or later; up and down: to another part`,
      onfocus: (e) => { for (const b of this.box.querySelectorAll(".order li button")) b.tabIndex = b === e.target ? 0 : -1; },
      onkeydown: (e) => {
        const beside = { ArrowUp: i - 1, ArrowDown: i + 1, Home: 0, End: parts.length - 1 }[e.key];
        if (beside !== undefined) {
          e.preventDefault();
          this.box.querySelector(`[data-key="part${beside}"]`)?.focus();
        }
        const to = { ArrowLeft: i - 1, ArrowRight: i + 1 }[e.key];
        if (to === undefined) return;
        e.preventDefault();
        this.put(parts, i, to);
      },
      onpointerdown: (e) => { from = { x: e.clientX, y: e.clientY }; e.target.setPointerCapture(e.pointerId); },
      onpointermove: (e) => { if (from && Math.hypot(e.clientX - from.x, e.clientY - from.y) > 4) mark(target(e)); },
      onpointerup: (e) => {
        const li = this.box.querySelector(".order li.target");
        from = null;
        mark(null);
        if (li) this.put(parts, i, [...li.parentNode.children].indexOf(li));
      },
      onpointercancel: () => { from = null; mark(null); },
    }, apart ? name.replace("CPU ", "") : name, n > 1 ? ` ×${n}` : ""));
  }

  // put runs the machine with a part of the order at another place.
  // Steps that have nothing to do in this order are left out.
  put(parts, from, to) {
    if (to < 0 || to >= parts.length || from === to) return;
    const list = [...parts];
    list.splice(to, 0, ...list.splice(from, 1));
    this.focus = `part${to}`;
    const before = this.here();
    this.ask({ schedule: list.map((p) => p.who + p.n).join(""), sub: -1, loose: true }).then(() => {
      this.fresh();
      this.undo = before;
      this.say(this.view.dropped ? `In this order these steps have nothing to do, and are left out: ${named(this.view.dropped)}.` : "The machine has run in the new order.");
    }).catch((e) => {
      this.focus = null;
      complain(e);
    });
  }

  async undone() {
    const to = this.undo;
    this.fresh();
    await this.ask(to);
  }

  events(at) {
    const v = this.view;
    this.update(at, "events", [v.events, v.sub, v.did], () => [
      el("div", { class: "events" }, el("h3", {}, "What the last step did"),
        v.events.length === 0 ? el("p", {}, v.did || "Nothing yet.")
          : el("ol", {}, ...v.events.map((e, i) => el("li", i === v.sub ? { class: "current", "aria-current": "step" } : {}, `${e.who}: ${e.text}`))))]);
  }

  lanes(at) {
    const v = this.view;
    this.update(at, "lanes", v.cpus.length, () => {
      for (const key of this.drawn.keys()) if (key.startsWith("lane ")) this.drawn.delete(key);
      return [el("div", { class: "lanes" }, ...v.cpus.map((c) => el("section", { class: "lane", "aria-label": c.name })),
        el("section", { class: "lane", "aria-label": "Module and worker" }))];
    });
    const sections = at.querySelectorAll("section");
    v.cpus.forEach((c, i) => this.update(sections[i], `lane ${i}`, c, () => this.lane(c, i)));
    this.update(sections[v.cpus.length], "lane others", [v.module, v.worker, v.probes], () => [
      el("h3", {}, "Module and worker"),
      el("p", {}, this.button("module", v.module === "unregister" ? "Unregister the probes" : "Register the probes", () => this.forward("m"), { disabled: !v.module }), " ",
        this.button("worker", "Step the worker", () => this.forward("w"), { disabled: !v.worker })),
      ...v.probes.map((p) => el("p", {}, el("code", {}, p.text), `: ${p.state}; ${p.hits} ${p.hits === 1 ? "hit" : "hits"}, ${p.missed} missed`))]);
  }

  lane(c, i) {
    return [
      el("h3", {}, c.name, " ", this.button(`lane${i}`, "Step", () => this.forward("abcd"[i]), { disabled: !c.can, "aria-label": `Step ${c.name}` })),
      el("p", {}, el("code", {}, c.call), `: ${c.state}`),
      c.where ? el("p", {}, "at ", el("strong", {}, c.where), c.insn ? ": " : "", c.insn ? el("code", {}, c.insn) : "", c.frame ? el("span", { class: "soft" }, " (of the interrupted code, as a handler gets it)") : "") : "",
      ...c.fetch.map((f) => el("p", f.old ? { class: "old" } : {}, `fetches at ${f.place}: `, el("code", {}, `${f.bytes}  ${f.insn}`), f.old ? " (it has not seen the new bytes yet)" : "")),
      c.regs.some((r) => r.changed) ? el("p", {}, "changed: ", ...c.regs.filter((r) => r.changed).flatMap((r) => [el("span", { class: "changed mono" }, `${r.name} ${r.means || r.value}`), " "])) : "",
      c.regs.length ? this.details(`registers ${i}`, "Registers and stack", this.values(c.regs, `Registers of ${c.name}`), this.values(c.stack, `Stack of ${c.name}`)) : ""];
  }

  // details stay as open as the reader has left them.
  details(key, summary, ...inside) {
    const turned = this.folded.has(key);
    return el("details", { open: this.narrow === turned, ontoggle: (e) => (e.target.open === this.narrow ? this.folded.add(key) : this.folded.delete(key)) },
      el("summary", { "data-key": key }, summary), ...inside);
  }

  values(list, name) {
    return el("ul", { class: "values", "aria-label": name }, ...list.map((w) => el("li", {},
      el("strong", {}, w.name), " ", el("span", w.changed ? { class: "changed" } : {}, w.value), w.changed ? el("span", { class: "unseen" }, " (changed)") : "",
      w.means ? el("span", { class: "soft" }, ` ${w.means}`) : "")));
  }

  code(at) {
    const list = this.view.code;
    const texts = list.map((c) => c.rows.map((r) => JSON.stringify(r)));
    const shape = list.map((c) => [c.name, c.address, c.rows.map((r) => r.place)]);
    if (this.update(at, "code", shape, () => [el("div", { class: "codes" }, ...list.map((c) => this.section(c)))])) {
      this.rows = texts;
      return;
    }
    const bodies = at.querySelectorAll("tbody");
    list.forEach((c, n) => c.rows.forEach((r, i) => {
      if (this.rows[n][i] !== texts[n][i]) bodies[n].rows[i].replaceWith(this.row(r));
    }));
    this.rows = texts;
  }

  section(c) {
    return el("section", { "aria-label": c.name },
      el("h3", {}, c.name, el("span", { class: "soft" }, ` ${c.address}`)),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Code of ${c.name}` }, el("table", { class: "code fixed" },
        el("colgroup", {}, ...["place", "cpus", "bytes", "words"].map((name) => el("col", { class: `of-${name}` }))),
        el("thead", { class: "unseen" }, el("tr", {}, ...["place", "CPUs here", "bytes", "instruction"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, ...c.rows.map((r) => this.row(r))))));
  }

  row(r) {
    return el("tr", r.cpus ? { class: "here" } : {},
      el("th", { scope: "row" }, r.place),
      el("td", {}, r.probe ? "● probe " : "", (r.cpus ?? []).join(", ")),
      el("td", { class: "bytes" }, ...r.bytes.flatMap((b) => [b.changed || b.poked ? el("span", { class: (b.changed ? "changed " : "") + (b.poked ? "poked" : "") }, b.value) : b.value, " "])),
      el("td", {}, r.text, r.was ? el("div", { class: "soft" }, `(was: ${r.was})`) : ""));
  }

  log(at) {
    this.update(at, "log", this.view.log, () => [el("h3", {}, "The kernel's log, and the handlers' lines"), this.view.log.length
      ? el("ol", { class: "mono" }, ...this.view.log.map((l) => el("li", l.new ? { class: "changed" } : {}, l.text))) : el("p", { class: "soft" }, "Nothing yet."),
    el("p", { class: "soft" }, "State ", el("code", { class: "hash" }))]);
    at.querySelector(".hash").textContent = this.view.hash;
  }
}
