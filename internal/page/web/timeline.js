// The timeline: a lane for the module, each CPU and the worker. It is the controller: a click goes to a step, a bar can
// be dragged to another place, the heads of the lanes have the buttons that let one of them step.

// signs are the marks on the timeline: a letter, and what it means.
const signs = {
  register: ["R", "registered"], unregister: ["U", "unregistered"], queue: ["q", "queued for the worker, or taken off its list"], trap: ["T", "trap, or the call at an fentry site"],
  handler: ["h", "handler"], slot: ["s", "in the slot"], detour: ["D", "in the detour buffer"], jump: ["J", "jump taken, or in place"], write: ["w", "write"],
  sync: ["=", "synchronized"], wait: ["…", "the worker waits"], missed: ["m", "missed"], return: ["↵", "return"], fault: ["!", "fault"], other: ["·", "another step of the protocol"],
};

// mostApart is the most steps that are shown each on its own, mostBars the most bars that are drawn.
const mostApart = 400, mostBars = 300;

// markWidth is the width of a mark in pixels, laneHeight a lane's height; beforeHeight that of the run before.
const markWidth = 24, laneHeight = 30, beforeHeight = 16, rulerHeight = 18;

// Columns are a run's steps from left to right: a column for each event, and one for each stretch of instructions without an event.
class Columns {
  constructor(run, apart) {
    this.run = run;
    this.list = [];
    this.parts = [];
    const marks = new Map();
    for (const m of run.marks) marks.set(m.step, [...(marks.get(m.step) ?? []), m]);
    const left = [...run.left];
    let x = 0, step = 0;
    const add = (c, w) => {
      const column = { ...c, x, w };
      this.list.push(column);
      c.part?.cells.push(column);
      x += w;
    };
    for (const all of run.letters.match(/(.)\1*/g) ?? []) {
      for (const who of apart ? all : [all]) {
        while (left[0] && left[0].at <= step) add({ left: left.shift() }, 44);
        const part = { who: who[0], n: who.length, step, x, cells: [] };
        let plain = step;
        const flush = (end) => { if (end > plain) add({ part, from: plain, to: end }, end - plain === 1 ? markWidth : Math.min(64, 26 + 6 * Math.log2(end - plain))); };
        for (const end = step + who.length; step < end; step++) {
          const events = marks.get(step);
          if (!events) continue;
          if (events[0].sub >= 0) flush(step);
          else flush(step + 1);
          for (const m of events) add({ part, mark: m, from: step, to: step + 1 }, markWidth);
          plain = step + 1;
        }
        flush(step);
        part.w = x - part.x;
        this.parts.push(part);
      }
    }
    for (const l of left) add({ left: l }, 44);
    this.width = x;
  }

  // at is the place of a state, from the left.
  at(steps, sub) {
    let x = 0;
    for (const c of this.list) {
      if (c.left) continue;
      if (c.mark && c.to === steps && sub >= 0 && c.mark.sub === sub) return c.x + c.w;
      if (c.to <= steps && (sub < 0 || c.to < steps)) x = c.x + c.w;
      else if (c.from < steps && !c.mark) return sub < 0 ? c.x + c.w * (steps - c.from) / (c.to - c.from) : x;
      else if (c.from >= steps) break;
    }
    return x;
  }

  // place is the state at a point, null for the beginning.
  place(x) {
    const c = this.list.findLast((c) => c.x <= x && !c.left);
    if (!c) return null;
    if (c.mark) return this.run.place(c.mark.step, c.mark.sub);
    return this.run.place(c.from + Math.min(c.to - c.from, Math.max(1, Math.ceil((x - c.x) / c.w * (c.to - c.from)))) - 1, -1);
  }

  // gap is where a part that is dragged to a point would go in: before the part of this number.
  gap(x, from) {
    const i = this.parts.findIndex((p) => x < p.x + p.w);
    if (i < 0) return this.parts.length;
    return i > from ? i + 1 : i;
  }
}

class Timeline {
  constructor(machine) {
    this.machine = machine;
    this.apart = false;
    this.heads = el("div", { class: "heads" });
    this.track = el("div", { class: "track" });
    this.foot = el("div", { class: "foot" });
    this.order = el("ol", { class: "bars", "aria-label": "Who ran, in order" });
    this.ruler = el("div", { class: "ruler", tabindex: 0, role: "slider", "data-key": "playhead", "aria-label": "Place in the run", "aria-valuemin": 0, "aria-orientation": "horizontal", onkeydown: (e) => this.key(e) });
    this.line = el("div", { class: "playhead", "aria-hidden": "true" });
    this.insertion = el("div", { class: "insertion", hidden: true, "aria-hidden": "true" });
    this.gone = el("div", { class: "to-come", "aria-hidden": "true" });
    this.lines = el("div", { "aria-hidden": "true" });
    this.more = el("div");
    this.whole = el("div", { class: "tracks" }, this.lines, this.ruler, this.order, this.more, this.gone, this.line, this.insertion);
    this.scroller = el("div", { class: "scroller" }, this.whole);
    this.track.append(this.scroller);
    this.seeks(this.whole);
    // bars are the drawn bars by number, each with the text from which it was made.
    this.bars = new Map();
    this.at = el("div", { class: "timeline" }, el("div", { class: "grid" }, this.heads, this.track), this.foot);
  }

  draw(v) {
    const m = this.machine;
    const lanes = ["m", ...v.cpus.map((c, i) => "abcd"[i]), "w"];
    const apart = this.apart && m.run.letters.length <= mostApart;
    m.update(this.heads, "heads", [v.cpus.map((c) => [c.name, c.can]), v.module, v.worker, m.before && [m.before.name, m.compares]], () => this.headsOf(v, lanes));
    const text = JSON.stringify([m.run.letters, m.run.marks.length, m.run.stale.length, m.run.left, lanes, apart, m.before?.letters, m.before?.name, this.first(v, apart)]);
    if (m.drawn.get("track") !== text) {
      m.drawn.set("track", text);
      this.drawTrack(lanes, apart);
    }
    m.update(this.foot, "foot", [v.steps, m.run.letters.length, this.apart, apart], () => this.footOf(v, apart));
    this.playhead(v);
  }

  // first is the number of the first bar that is drawn.
  first(v, apart) {
    const parts = apart ? this.machine.run.letters.length : (this.machine.run.letters.match(/(.)\1*/g) ?? []).length;
    if (parts <= mostBars) return 0;
    const here = apart ? v.steps : (this.machine.run.letters.slice(0, v.steps).match(/(.)\1*/g) ?? []).length;
    return Math.max(0, Math.min(parts - mostBars, Math.floor(here / 100) * 100 - mostBars / 2));
  }

  headsOf(v, lanes) {
    const m = this.machine;
    return [el("div", { class: "ruler" }), ...lanes.map((who) => {
      if (who === "m") return el("div", { class: "head" }, el("span", { class: "chip who-m" }, "module"), m.button("module", v.module === "unregister" ? "Unregister" : "Register", () => m.forward("m"), { disabled: !v.module, "aria-label": v.module === "unregister" ? "Unregister the probes" : "Register the probes" }));
      if (who === "w") return el("div", { class: "head" }, el("span", { class: "chip who-w" }, "worker"), m.button("worker", "Step", () => m.forward("w"), { disabled: !v.worker, "aria-label": "Step the worker" }));
      const i = "abcd".indexOf(who);
      return el("div", { class: "head" }, el("span", { class: `chip who-${who}` }, v.cpus[i].name), m.button(`lane${i}`, "Step", () => m.forward(who), { disabled: !v.cpus[i].can, "aria-label": `Step ${v.cpus[i].name}` }));
    }), m.before && m.before.name ? el("div", { class: "head beside" }, el("span", { class: "soft" }, m.before.name)) : ""];
  }

  footOf(v, apart) {
    const m = this.machine;
    return [
      m.run.letters.length > 1 ? el("label", {}, el("input", { type: "checkbox", "data-key": "apart", checked: this.apart, onchange: (e) => { this.apart = e.target.checked; m.draw(); } }), " every step apart", this.apart && !apart ? ` (these are more than ${mostApart})` : "") : "",
      details(m, "signs", "The timeline's signs", el("p", {}, "Click a place, or drag the line. Drag a bar to another place, or use the arrow keys on it: the machine then runs in that order. A grey number is a stretch of instructions without an event; from a write until a CPU has seen it, its lane is hatched."),
        el("dl", { class: "signs" }, ...Object.entries(signs).map(([kind, [sign, text]]) => el("div", {}, el("dt", {}, el("span", { class: `mark is-${kind}` }, sign)), el("dd", {}, text))))),
      el("span", { class: "soft count" }, m.run.letters.length > v.steps ? `step ${v.steps} of ${m.run.letters.length}` : `${v.steps} ${v.steps === 1 ? "step" : "steps"}`)];
  }

  // drawTrack brings the lanes up to date: a step further, only the last bar is made anew.
  drawTrack(lanes, apart) {
    const m = this.machine, run = m.run, compared = m.before?.name ? m.before : null;
    this.columns = new Columns(run, apart);
    const c = this.columns, top = (who) => rulerHeight + lanes.indexOf(who) * laneHeight, height = rulerHeight + lanes.length * laneHeight;
    const first = this.first(m.view, apart), shown = c.parts.slice(first, first + mostBars), bars = new Map();
    shown.forEach((p, n) => {
      const i = first + n, text = `${p.who} ${p.n} ${p.step} ${p.x} ${p.w} ${top(p.who)} ${p.cells.map((x) => (x.mark ? `${x.mark.sub}${x.mark.kind}${x.mark.text}` : x.to - x.from)).join()}`;
      const old = this.bars.get(i);
      bars.set(i, old?.text === text ? old : { text, li: this.bar(p, i, top(p.who)) });
    });
    for (const [i, b] of this.bars) if (bars.get(i) !== b) b.li.remove();
    let at = this.order.firstChild;
    for (const { li } of bars.values()) {
      if (li === at) at = at.nextSibling;
      else this.order.insertBefore(li, at);
    }
    this.bars = bars;
    // One bar is a stop of the Tab key.
    if (!this.order.querySelector('button[tabindex="0"]')) this.order.querySelector("button")?.setAttribute("tabindex", "0");
    m.update(this.lines, "lines", lanes, () => lanes.map((who) => el("div", { class: "lane-line", style: `top:${top(who)}px;height:${laneHeight}px` })));
    m.update(this.more, "more", [run.stale, run.left, lanes, compared && [compared.letters, run.letters], c.width], () => [
      ...this.stales(run, c, (who) => ({ top: top(who), height: laneHeight })),
      ...c.list.filter((x) => x.left).map((x) => el("div", { class: "not-needed", style: `left:${x.x}px;top:${top(x.left.who)}px;width:${x.w - 2}px;height:${laneHeight - 6}px`, title: `${stepsOf(x.left.who, x.left.n)}: not needed in this order` }, `×${x.left.n}`)),
      ...(compared ? this.beside(compared, lanes, height + 18, c) : [])]);
    this.whole.style.cssText = `height:${height + (compared ? lanes.length * beforeHeight + 24 : 0)}px;width:${Math.max(c.width, compared ? new Columns(compared, false).width : 0) + 40}px`;
    this.height = height;
  }

  // stales hatch a CPU's lane from a write until the CPU has seen it.
  stales(run, c, where) {
    const list = [], from = new Map();
    const end = (who, step) => list.push([who, from.get(who), step]);
    for (const s of run.stale) {
      for (const who of [...from.keys()]) if (!s.cpus.includes(who)) { end(who, s.step); from.delete(who); }
      for (const who of s.cpus) if (!from.has(who)) from.set(who, s.step);
    }
    for (const who of from.keys()) end(who, run.letters.length - 1);
    return list.map(([who, a, b]) => {
      const x = c.at(a + 1, -1), { top, height } = where(who);
      return el("div", { class: "stale", style: `left:${x}px;top:${top}px;width:${Math.max(6, c.at(b + 1, -1) - x)}px;height:${height}px`, title: `${nameOf(who)} may still fetch the old bytes` });
    });
  }

  bar(p, i, top) {
    const cells = p.cells.map((x) => (x.mark ? this.mark(x) : el("span", { class: "plain", "aria-hidden": "true", style: `width:${x.w}px`, title: stepsOf(p.who, x.to - x.from) }, `${x.to - x.from}`)));
    const button = el("button", {
      type: "button", "data-key": `part${i}`, tabindex: i === 0 ? 0 : -1,
      onfocus: (e) => { for (const b of this.track.querySelectorAll(".bars button")) b.tabIndex = b === e.currentTarget ? 0 : -1; },
      onclick: (e) => { if (e.detail === 0) this.machine.go(this.machine.run.place(p.step + p.n - 1, -1)).catch(complain); },
      onkeydown: (e) => this.barKey(e, i),
    }, el("span", { class: "unseen" }, `${stepsOf(p.who, p.n)}${this.said(p)}; Enter: go there; left and right: earlier or later; up and down: to another part`), ...cells);
    return el("li", { class: `who-${p.who}`, style: `left:${p.x}px;top:${top}px;width:${p.w}px` }, button);
  }

  // said has the events of a bar as words, for a screen reader.
  said(p) {
    const list = p.cells.filter((x) => x.mark).map((x) => signs[x.mark.kind][1]);
    return list.length ? `: ${list.slice(0, 8).join(", ")}${list.length > 8 ? " and more" : ""}` : "";
  }

  mark(x) {
    return el("span", { class: `mark is-${x.mark.kind}`, "aria-hidden": "true", style: `width:${x.w}px`, "data-mark": `${x.mark.step}/${x.mark.sub}`, title: x.mark.text }, signs[x.mark.kind][0]);
  }

  barKey(e, i) {
    const beside = { ArrowUp: i - 1, ArrowDown: i + 1, Home: 0, End: this.columns.parts.length - 1 }[e.key];
    if (beside !== undefined) {
      e.preventDefault();
      this.track.querySelector(`[data-key="part${beside}"]`)?.focus();
    }
    const to = { ArrowLeft: i - 1, ArrowRight: i + 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    this.machine.put(this.columns.parts, i, to);
  }

  key(e) {
    const m = this.machine;
    const go = { ArrowRight: () => m.forward(), ArrowLeft: () => m.back(), ArrowUp: () => m.forward(), ArrowDown: () => m.back(), Home: () => m.go({ schedule: m.scenario.start ?? "", sub: -1 }), End: () => m.run.tip && m.go({ schedule: m.run.tip.schedule, sub: m.run.tip.sub }) }[e.key];
    if (!go) return;
    e.preventDefault();
    go()?.catch(complain);
  }

  // seeks takes clicks and drags: of a bar, or of the playhead.
  seeks(whole) {
    let from = null;
    const x = (e) => e.clientX - whole.getBoundingClientRect().left;
    whole.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      const bar = e.target.closest(".bars li"), i = bar ? Number(bar.firstChild.dataset.key.slice(4)) : -1;
      from = { x: x(e), i, bar, drags: !bar };
      whole.setPointerCapture(e.pointerId);
      if (!bar) this.seek(x(e));
    });
    whole.addEventListener("pointermove", (e) => {
      if (!from) return;
      if (!from.bar) return this.seek(x(e));
      if (!from.drags && Math.abs(x(e) - from.x) < 5) return;
      if (this.machine.fixed) return;
      from.drags = true;
      from.bar.classList.add("ghost");
      from.bar.style.transform = `translateX(${x(e) - from.x}px)`;
      from.gap = this.columns.gap(x(e), from.i);
      const parts = this.columns.parts, p = parts[from.gap];
      this.insertion.hidden = from.gap === from.i || from.gap === from.i + 1;
      this.insertion.style.cssText = `left:${p ? p.x - 2 : this.columns.width}px;top:${rulerHeight}px;height:${this.height - rulerHeight}px`;
    });
    const end = (e) => {
      const f = from;
      from = null;
      if (!f?.bar) return;
      f.bar.classList.remove("ghost");
      f.bar.style.transform = "";
      this.insertion.hidden = true;
      if (e.type === "pointercancel") return;
      if (!f.drags) {
        f.bar.firstChild.focus({ preventScroll: true });
        return this.seek(f.x);
      }
      const to = f.gap > f.i ? f.gap - 1 : f.gap;
      this.machine.put(this.columns.parts, f.i, to);
    };
    whole.addEventListener("pointerup", end);
    whole.addEventListener("pointercancel", end);
  }

  // seek goes to a point; while an answer is under way, only the last point counts.
  seek(x) {
    const m = this.machine, start = m.scenario.start ?? "";
    let to = this.columns.place(x) ?? { schedule: start, sub: -1 };
    if (!letters(to.schedule).startsWith(letters(start))) to = { schedule: start, sub: -1 };
    if (this.going) return void (this.then = x);
    const at = this.wanted ?? m.here();
    if (at.schedule === to.schedule && at.sub === to.sub) return;
    this.wanted = to;
    this.going = m.go(to).catch(complain).finally(() => {
      this.going = this.wanted = null;
      const then = this.then;
      this.then = null;
      if (then !== null && then !== undefined) this.seek(then);
    });
  }

  playhead(v) {
    const c = this.columns, x = c.at(v.steps, v.sub), all = this.machine.run.letters.length;
    this.line.style.cssText = `left:${x}px;height:${this.height}px`;
    this.gone.style.cssText = `left:${x + 1}px;top:${rulerHeight}px;width:${Math.max(0, c.width - x)}px;height:${this.height - rulerHeight}px`;
    this.track.querySelector(".mark.now")?.classList.remove("now");
    if (v.sub >= 0) this.track.querySelector(`.bars [data-mark="${v.steps - 1}/${v.sub}"]`)?.classList.add("now");
    this.ruler.setAttribute("aria-valuemax", all);
    this.ruler.setAttribute("aria-valuenow", v.steps);
    this.ruler.setAttribute("aria-valuetext", `step ${v.steps} of ${all}${v.sub >= 0 && v.events.length > 1 ? `, event ${v.sub + 1} of ${v.events.length}` : ""}`);
    this.playsAt = x;
  }

  // settle brings the playhead into sight, once all is drawn.
  settle() {
    const box = this.scroller, x = this.playsAt;
    if (x < box.scrollLeft + 30 || x > box.scrollLeft + box.clientWidth - 60) box.scrollLeft = x - box.clientWidth * 0.6;
  }

  // beside draws another run under this one, and marks the first difference.
  beside(run, lanes, top, c) {
    const b = new Columns(run, false);
    const differ = difference(this.machine.run, run);
    const list = b.parts.slice(0, mostBars).map((p) => el("div", { class: `small who-${p.who}`, style: `left:${p.x}px;top:${top + lanes.indexOf(p.who) * beforeHeight}px;width:${p.w}px;height:${beforeHeight - 2}px` },
      ...p.cells.map((x) => el("span", { class: x.mark ? `mark is-${x.mark.kind}` : "plain", style: `width:${x.w}px`, title: x.mark?.text }, x.mark ? signs[x.mark.kind][0] : `${x.to - x.from}`))));
    const stale = this.stales(run, b, (who) => ({ top: top + lanes.indexOf(who) * beforeHeight, height: beforeHeight }));
    const marks = differ === null ? [el("p", { class: "differs-here", style: `left:4px;top:${top - 18}px` }, "no difference")] : [
      el("div", { class: "difference", style: `left:${c.at(differ, -1)}px;top:${rulerHeight}px;height:${top - rulerHeight + lanes.length * beforeHeight}px` }),
      el("p", { class: "differs-here", style: `left:${c.at(differ, -1) + 4}px;top:${top - 18}px` }, `first difference: step ${differ + 1}`)];
    return [el("div", { class: "other", role: "img", "aria-label": `The run ${run.name}: ${run.letters.length} steps; ${differ === null ? "no difference" : `the first difference is step ${differ + 1}`}` }, ...list, ...stale), ...marks];
  }
}

// difference is the first step, from 0, in which two runs differ; null if none does.
function difference(a, b) {
  let n = a.common(b.letters);
  if (n === a.letters.length && n === b.letters.length) n = Infinity;
  const text = (m) => m && `${m.step} ${m.sub} ${m.kind} ${m.text}`;
  for (let i = 0; i < a.marks.length || i < b.marks.length; i++) {
    if (text(a.marks[i]) === text(b.marks[i])) continue;
    return Math.min(n, a.marks[i]?.step ?? Infinity, b.marks[i]?.step ?? Infinity);
  }
  return n === Infinity ? null : n;
}
