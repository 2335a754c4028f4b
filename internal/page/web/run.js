// A run: the steps that are known, a letter each, and their marks.

// letters writes a schedule such as mw3a12 as one letter for each step; schedule is the reverse.
const letters = (schedule) => schedule.replace(/([a-z])(\d+)/g, (_, who, n) => who.repeat(Number(n)));
const scheduleOf = (steps) => steps.replace(/(.)\1+/g, (all, who) => who + all.length);

class Run {
  constructor(steps = "", marks = [], stale = [], left = [], tip = null) {
    Object.assign(this, { letters: steps, marks, stale, left, tip, name: "" });
  }

  // as is the same run under a name.
  as(name) {
    return Object.assign(new Run(this.letters, this.marks, this.stale, this.left, this.tip), { name });
  }

  // common counts the equal steps at the beginning of both runs.
  common(steps) {
    let n = 0;
    while (n < steps.length && steps[n] === this.letters[n]) n++;
    return n;
  }

  // after is the run that is known after an answer. What comes later stays known until something else is done.
  after(v, known, anew) {
    const steps = letters(v.schedule);
    if (!anew && this.letters.startsWith(steps)) {
      if (steps.length === this.letters.length && (!this.tip || order(v) > order(this.tip))) return Object.assign(new Run(this.letters, this.marks, this.stale, v.left ?? this.left, { schedule: v.schedule, sub: v.sub, steps: v.steps }));
      return this;
    }
    const { marks, stale } = this.merged(v, known);
    return new Run(steps, marks, stale, v.left ?? this.left.filter((l) => l.at <= known), { schedule: v.schedule, sub: v.sub, steps: v.steps });
  }

  merged(v, known) {
    return { marks: [...this.marks.filter((m) => m.step < known), ...v.marks], stale: [...this.stale.filter((s) => s.step < known), ...v.stale] };
  }

  // place is the state after a step, or at an event of its own.
  place(step, sub) {
    return { schedule: scheduleOf(this.letters.slice(0, step + 1)), sub };
  }

  // next is the next place after one, null at the end of what is known.
  next(from, by) {
    if (!this.tip) return null;
    const steps = letters(from.schedule).length;
    const here = order({ steps, sub: from.sub }), end = order(this.tip);
    if (here >= end) return null;
    let to = null;
    if (by === "protocol") {
      const m = this.marks.find((x) => x.sub >= 0 && order({ steps: x.step + 1, sub: x.sub }) > here);
      if (m) to = { ...this.place(m.step, m.sub), steps: m.step + 1 };
    } else {
      const step = from.sub >= 0 ? steps - 1 : steps;
      to = { ...this.place(step, -1), steps: step + 1 };
    }
    if (!to || order(to) >= end) to = this.tip;
    return { schedule: to.schedule, sub: to.sub };
  }
}

// order compares places: a step's end comes after its events.
const order = (p) => p.steps * 1000 + (p.sub < 0 ? 999 : p.sub);
