// A machine on the page: its picture, and the buttons that move it. Watch has one, and
// so has each lesson.

// Machine shows a machine in an element. changed(machine) is called after each move.
class Machine {
  constructor(box, changed) {
    Object.assign(this, { box, changed, scenario: null, view: null, who: "turn", by: "protocol", turn: 0, playing: null, last: -1 });
  }

  // show goes to a state of a scenario: {probes, calls, release, careless, image}.
  async show(scenario, schedule, sub) {
    this.stop();
    this.scenario = scenario;
    await this.ask({ schedule, sub });
  }

  async ask(q) {
    const turn = ++this.turn;
    const v = await question({ do: "watch", ...this.scenario, ...q });
    if (turn !== this.turn) return; // a later question is under way
    this.view = v;
    this.draw();
    this.changed(this);
  }

  move(q) {
    return this.ask({ schedule: this.view.schedule, sub: this.view.sub, by: this.by, ...q });
  }

  // next is who takes the next step where everybody does in turn.
  next() {
    const v = this.view;
    if (v.module === "register") return "m";
    const all = [...v.cpus.map((c, i) => (c.can ? "abcd"[i] : null)), v.worker ? "w" : null];
    for (let i = 1; i <= all.length; i++) {
      const n = (this.last + i) % all.length;
      if (all[n]) {
        this.last = n;
        return all[n];
      }
    }
    return null;
  }

  async forward(who) {
    const inside = this.by === "protocol" && this.view.sub >= 0 && this.view.sub + 1 < this.view.events.length;
    who ??= this.who === "turn" ? (inside ? this.view.schedule.replace(/\d+$/, "").at(-1) : this.next()) : this.who;
    if (!who) return false;
    await this.move({ move: "forward", who });
    return this.view.moved;
  }

  async back() {
    this.last = -1;
    await this.move({ move: "back" });
    return this.view.moved;
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

  // draw makes the picture anew, and keeps the focus where it was.
  draw() {
    const focus = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    const open = new Set([...this.box.querySelectorAll("details[open]")].map((d) => d.dataset.key));
    this.box.replaceChildren(this.controls(), this.order(), this.events(), this.lanes(), this.code(), this.log());
    for (const d of this.box.querySelectorAll("details")) d.open = open.has(d.dataset.key);
    if (focus) this.box.querySelector(`[data-key="${focus}"]`)?.focus();
  }

  button(key, text, action, more) {
    return el("button", { type: "button", "data-key": key, onclick: () => action().catch(complain), ...more }, text);
  }

  select(key, label, options, value, chosen) {
    const s = el("select", { "data-key": key, onchange: (e) => chosen(e.target.value) }, ...options.map(([v, text]) => el("option", { value: v }, text)));
    s.value = value;
    return el("label", {}, label, " ", s);
  }

  controls() {
    const v = this.view;
    const who = [["turn", "everybody in turn"], ...v.cpus.map((c, i) => ["abcd"[i], c.name]), ["m", "the module"], ["w", "the worker"]];
    return el("div", { class: "controls", role: "toolbar", "aria-label": "Steps", onkeydown: (e) => this.key(e) },
      this.button("begin", "Begin again", () => this.ask({ schedule: "", sub: -1 })),
      this.button("back", "◀ Back", () => this.back()),
      this.button("forward", "Forward ▶", () => this.forward()),
      this.button("play", this.playing ? "Stop" : "Play", async () => this.play()),
      this.select("by", "by", [["protocol", "steps of the protocol"], ["instruction", "instructions"]], this.by, (x) => { this.by = x; }),
      this.select("who", "who steps", who, this.who, (x) => { this.who = x; }),
      el("span", { class: "soft" }, `${v.steps} steps`));
  }

  key(e) {
    if (e.target.tagName === "SELECT") return;
    const go = { ArrowRight: () => this.forward(), ArrowLeft: () => this.back() }[e.key];
    if (!go) return;
    e.preventDefault();
    go().catch(complain);
  }

  // order is who has taken steps, in order; a part can be dragged to another place.
  order() {
    const parts = this.view.schedule.match(/[a-z]\d*/g) ?? [];
    const name = (p) => ({ m: "module", w: "worker" })[p[0]] ?? `CPU ${"abcd".indexOf(p[0])}`;
    const put = (from, to) => {
      if (to < 0 || to >= parts.length || from === to) return;
      const list = [...parts];
      list.splice(to, 0, ...list.splice(from, 1));
      this.ask({ schedule: list.join(""), sub: -1 }).catch(() => complain(new Error("This order does not go: somebody in it would have nothing to do.")));
    };
    const items = parts.map((p, i) => el("li", {
      draggable: "true", class: `who-${p[0]}`,
      ondragstart: (e) => e.dataTransfer.setData("text/x-part", String(i)),
      ondragover: (e) => e.preventDefault(),
      ondrop: (e) => { e.preventDefault(); e.stopPropagation(); const from = e.dataTransfer.getData("text/x-part"); if (from) put(Number(from), i); },
    }, el("button", {
      type: "button", "data-key": `part${i}`, "aria-label": `${name(p)}, ${p.slice(1) || 1} steps; with the arrow keys: earlier or later`,
      onkeydown: (e) => {
        if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
        e.preventDefault();
        put(i, i + (e.key === "ArrowLeft" ? -1 : 1));
      },
    }, name(p), p.length > 1 ? ` ×${p.slice(1)}` : "")));
    return el("div", { class: "order" }, el("h3", {}, "Who ran, in order"),
      items.length ? el("ol", {}, ...items) : el("p", { class: "soft" }, "Nobody has taken a step yet."),
      items.length > 1 ? el("p", { class: "soft" }, "Drag a part to another place (or use the arrow keys on it) to run the machine in that order.") : "");
  }

  events() {
    const v = this.view;
    return el("div", { class: "events", "aria-live": "polite" }, el("h3", {}, "What the last step did"),
      v.events.length === 0 ? el("p", {}, v.steps ? "An instruction, and nothing of kprobes." : "Nothing yet.")
        : el("ol", {}, ...v.events.map((e, i) => el("li", i === v.sub ? { class: "current", "aria-current": "step" } : {}, `${e.who}: ${e.text}`))));
  }

  lanes() {
    const v = this.view;
    const cpus = v.cpus.map((c, i) => el("section", { class: "lane", "aria-label": c.name },
      el("h3", {}, c.name, " ", this.button(`lane${i}`, "Step", () => this.forward("abcd"[i]), { disabled: !c.can, "aria-label": `Step ${c.name}` })),
      el("p", {}, el("code", {}, c.call), `: ${c.state}`),
      c.where ? el("p", {}, "at ", el("strong", {}, c.where), ": ", el("code", {}, c.insn)) : "",
      ...c.fetch.map((f) => el("p", f.old ? { class: "old" } : {}, `fetches at ${f.place}: `, el("code", {}, `${f.bytes}  ${f.insn}`), f.old ? " (it has not seen the new bytes yet)" : "")),
      c.regs.length ? el("details", { "data-key": `regs${i}` }, el("summary", {}, "Registers and stack"), el("div", { class: "words" }, this.words(c.regs, `Registers of ${c.name}`), this.words(c.stack, `Stack of ${c.name}`))) : "",
      c.regs.some((r) => r.changed) ? el("p", {}, "changed: ", ...c.regs.filter((r) => r.changed).flatMap((r) => [el("span", { class: "changed mono" }, `${r.name} ${r.means || r.value}`), " "])) : ""));
    const other = el("section", { class: "lane", "aria-label": "Module and worker" },
      el("h3", {}, "Module and worker"),
      el("p", {}, this.button("module", v.module === "unregister" ? "Unregister the probes" : "Register the probes", () => this.forward("m"), { disabled: !v.module }), " ",
        this.button("worker", "Step the worker", () => this.forward("w"), { disabled: !v.worker })),
      ...v.probes.map((p) => el("p", {}, el("code", {}, p.text), `: ${p.state}; ${p.hits} hits, ${p.missed} missed`)));
    return el("div", { class: "lanes" }, ...cpus, other);
  }

  words(list, caption) {
    return el("table", { class: "registers" }, el("caption", {}, caption), el("tbody", {}, ...list.map((w) => el("tr", {},
      el("th", { scope: "row" }, w.name), el("td", w.changed ? { class: "changed" } : {}, w.value, w.changed ? el("span", { class: "unseen" }, " (changed)") : ""), el("td", {}, w.means ?? "")))));
  }

  code() {
    return el("div", { class: "codes" }, ...this.view.code.map((c) => el("section", { "aria-label": c.name },
      el("h3", {}, c.name, el("span", { class: "soft" }, ` ${c.address}`)),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Code of ${c.name}` }, el("table", { class: "code" },
        el("thead", { class: "unseen" }, el("tr", {}, ...["place", "who is here", "bytes", "instruction"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, ...c.rows.map((r) => el("tr", r.cpus ? { class: "here" } : {},
          el("th", { scope: "row" }, r.place),
          el("td", {}, r.probe ? "● probe " : "", (r.cpus ?? []).join(", ")),
          el("td", {}, ...r.bytes.flatMap((b) => [el("span", { class: (b.changed ? "changed " : "") + (b.poked ? "poked" : "") }, b.value), " "])),
          el("td", {}, r.text, r.was ? el("span", { class: "soft" }, `  (was: ${r.was})`) : "")))))))));
  }

  log() {
    return el("div", {}, el("h3", {}, "The kernel's log, and what handlers say"), this.view.log.length
      ? el("ol", { class: "mono" }, ...this.view.log.map((l) => el("li", l.new ? { class: "changed" } : {}, l.text))) : el("p", { class: "soft" }, "Nothing yet."),
      el("p", { class: "soft" }, "State ", el("code", { class: "hash" }, this.view.hash)));
  }
}
