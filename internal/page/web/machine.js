// A machine on the page: its place in time, and the moves. Watch has one, and so has the lessons' view.
// Parts draw it: the caption, the five bytes, the code, the CPUs, the controls, the timeline.

// names are the letters of a schedule in words.
const nameOf = (who) => ({ m: "module", w: "worker" }[who] ?? `CPU ${"abcd".indexOf(who)}`);

// stepsOf writes n steps of who.
const stepsOf = (who, n) => `${nameOf(who)}, ${n} ${n === 1 ? "step" : "steps"}`;

// Machine shows a machine in an element. changed(machine) is called after each move.
class Machine {
  constructor(box, changed) {
    Object.assign(this, { box, changed, scenario: null, view: null, who: "turn", by: "protocol", turn: 0, playing: null });
    // ahead are the places that Back has left, the nearest last: Forward comes back to them. undo is
    // the run before the order was changed.
    this.ahead = [];
    this.undo = null;
    this.note = "";
    // run is the longest run that is known from here: Back and the playhead leave it as it is. before is
    // another run to compare it with.
    this.run = new Run();
    this.before = null;
    this.narrow = matchMedia("(max-width: 64rem)").matches;
    // drawn has the data from which each part of the picture was drawn.
    this.drawn = new Map();
    this.parts = [new Caption(this), new FiveBytes(this), new Panes(this), new Controls(this), new Timeline(this)];
    box.replaceChildren(el("div", { class: "stage" }, ...this.parts.map((p) => p.at)));
    for (const at of [this.parts[0].at, this.parts[1].at]) swiped(at, (back) => (back ? this.back() : this.forward()).catch(complain));
  }

  // show goes to a state of a scenario: {probes, calls, release, careless, image}. If
  // there is no such state, it shows an error, and goes to the beginning. Steps wait for it.
  show(scenario, schedule, sub, loose) {
    return this.coming = this.showNow(scenario, schedule, sub, loose);
  }

  async showNow(scenario, schedule, sub, loose) {
    this.stop();
    const other = this.scenario && { ...this.scenario, lead: "" };
    const alike = loose && this.view && this.run;
    this.scenario = scenario;
    this.fresh();
    this.run = new Run();
    // The same order by other rules is compared with the run before.
    const same = other && ["probes", "calls", "image", "film"].every((k) => other[k] === scenario[k]);
    this.before = alike && same ? alike.as(what(other)) : null;
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
    const known = this.run.common(letters(q.schedule));
    const v = await question({ do: "watch", known, ...this.scenario, by: this.by, ...q });
    if (turn !== this.turn) return; // a later question is under way
    this.view = v;
    this.run = this.run.after(v, known, q.loose);
    const began = performance.now();
    this.draw();
    this.changed(this);
    this.work = performance.now() - began; // of the page in this step, without the program
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

  // forward lets who step. Without it, the machine goes on in the run that is known; at its end, the chosen
  // CPU steps, or everybody in turn.
  async forward(who) {
    await this.coming?.catch(() => {});
    this.note = "";
    const next = who ? null : this.ahead.pop() ?? (this.who === "turn" ? this.run.next(this.here(), this.by) : null);
    if (next) {
      await this.ask(next);
      return true;
    }
    this.ahead = [];
    await this.move({ move: "forward", who: who ?? (this.who === "turn" ? "" : this.who) });
    if (!this.view.moved) this.say("Nobody has anything left to do here: go back, begin again, or let the module unregister its probes.");
    return this.view.moved;
  }

  async back() {
    await this.coming?.catch(() => {});
    const from = this.here();
    const start = this.scenario.start ?? "";
    this.note = "";
    if (from.schedule === start && from.sub < 0) return false;
    await this.move({ move: "back" });
    if (!this.view.schedule.startsWith(start)) await this.ask({ schedule: start, sub: -1 });
    this.ahead.push(from);
    return true;
  }

  // go goes to a place of the run that is known.
  async go(to) {
    this.note = "";
    this.ahead = [];
    await this.ask(to);
  }

  async begin() {
    await this.coming?.catch(() => {});
    this.fresh();
    this.before = this.run.letters ? this.run : this.before;
    this.run = new Run();
    this.compares = false;
    return this.ask({ schedule: this.scenario.start ?? "", sub: -1 });
  }

  // put runs the machine with a part of the order at another place: before the part `to`.
  // Steps that have nothing to do in this order are left out, and stay on the timeline.
  put(parts, from, to) {
    if (to < 0 || to >= parts.length || from === to || this.fixed) return;
    const list = [...parts];
    list.splice(to, 0, ...list.splice(from, 1));
    this.focus = `part${to}`;
    const undo = { to: this.here(), run: this.run };
    this.ask({ schedule: list.map((p) => p.who + p.n).join(""), sub: -1, loose: true }).then(() => {
      this.fresh();
      this.undo = undo;
      this.before = undo.run.as("before the change");
      const left = this.view.left ?? [];
      this.say(left.length ? `In this order these steps have nothing to do, and are left out: ${left.map((l) => stepsOf(l.who, l.n)).join("; ")}.` : "The machine has run in the new order.");
    }).catch((e) => {
      this.focus = null;
      complain(e);
    });
  }

  async undone() {
    const { to, run } = this.undo;
    this.fresh();
    this.run = run;
    this.before = null;
    await this.ask(to);
  }

  say(text) {
    this.note = text;
    this.draw();
  }

  // steps says whether Forward has anything to do.
  steps() {
    if (this.ahead.length > 0 || this.who === "turn") return this.ahead.length > 0 || this.view.next !== "" || !!this.run.next(this.here(), this.by);
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
      if (this.playing && moved) this.playing = setTimeout(go, this.by === "protocol" ? 1200 : 250);
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
    for (const p of this.parts) p.draw(this.view);
    // What needs the layout comes last, so that a step is laid out once.
    for (const p of this.parts) p.settle?.(this.view);
    if (focus && document.activeElement?.dataset.key !== focus) this.box.querySelector(`[data-key="${focus}"]`)?.focus({ preventScroll: true });
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

  // chosen: steps are taken in another way from here.
  chosen() {
    this.ahead = [];
    this.draw();
    this.changed(this);
  }
}

// swiped takes swipes over the caption and the bytes: to the left is forwards, to the right back.
function swiped(at, move) {
  let from = null;
  at.addEventListener("touchstart", (e) => { from = e.touches.length === 1 ? { x: e.touches[0].clientX, y: e.touches[0].clientY } : null; }, { passive: true });
  at.addEventListener("touchend", (e) => {
    if (!from) return;
    const x = e.changedTouches[0].clientX - from.x, y = e.changedTouches[0].clientY - from.y;
    from = null;
    if (Math.abs(x) > 60 && Math.abs(x) > 2 * Math.abs(y)) move(x > 0);
  }, { passive: true });
}

// what describes a scenario beside another run of the same order.
const what = (s) => `${s.careless ? "careless" : "careful"}, ${s.release || "its own rules"}`;

// Controls are the buttons that move the machine.
class Controls {
  constructor(machine) {
    Object.assign(this, { machine, at: el("div", { class: "moves" }) });
  }

  select(key, label, options, value, chosen) {
    const s = el("select", { "data-key": key, onchange: (e) => chosen(e.target.value) }, ...options.map(([v, text]) => el("option", { value: v }, text)));
    s.value = value;
    return el("label", {}, label, " ", s);
  }

  draw(v) {
    const m = this.machine;
    const who = [["turn", "everybody in turn"], ...v.cpus.map((c, i) => ["abcd"[i], c.name]), ["m", "the module"], ["w", "the worker"]];
    m.update(this.at, "controls", [v.cpus.length, v.steps === 0 && v.sub, !!m.playing, m.by, m.who, m.steps(), v.schedule === (m.scenario.start ?? ""), !!m.undo, m.before?.name], () => [
      el("div", { class: "controls", role: "toolbar", "aria-label": "Steps", onkeydown: (e) => this.key(e) },
        m.button("begin", "Begin again", () => m.begin(), { class: "begin" }),
        m.button("back", "◀ Back", () => m.back(), { disabled: v.schedule === (m.scenario.start ?? "") && v.sub < 0 }),
        m.button("forward", "Forward ▶", () => m.forward(), { disabled: !m.steps(), class: "main" }),
        m.button("play", m.playing ? "Stop" : "Play", async () => m.play(), { disabled: !m.playing && !m.steps() }),
        this.select("by", "by", [["protocol", "steps of the protocol"], ["instruction", "instructions"]], m.by, (x) => { m.by = x; m.chosen(); }),
        this.select("who", "who steps", who, m.who, (x) => { m.who = x; m.chosen(); })),
      // Here they are in sight, however many lanes there are.
      m.undo || m.before?.name ? el("div", { class: "ordered" },
        m.undo ? m.button("undo", "Undo the change of the order", () => m.undone()) : "",
        m.before?.name ? m.button("alone", "Hide the other run", async () => { m.before = null; m.draw(); }) : "") : ""]);
  }

  key(e) {
    if (e.target.tagName === "SELECT") return;
    const go = { ArrowRight: () => this.machine.forward(), ArrowLeft: () => this.machine.back(), Home: () => this.machine.begin() }[e.key];
    if (!go) return;
    e.preventDefault();
    go().catch(complain);
  }
}
