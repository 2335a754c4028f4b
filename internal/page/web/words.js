// The caption: what the step did.

// Caption is two lines above the code. It is one element for good: only then is a change of its text announced.
class Caption {
  constructor(machine) {
    this.machine = machine;
    this.what = el("p", { class: "caption", role: "status" });
    this.why = el("p", { class: "why" });
    this.at = el("div", { class: "says" }, this.what, this.why);
  }

  draw(v) {
    const e = v.events[v.sub];
    const text = this.machine.note || (e ? `${e.who}: ${e.text}` : v.did) || (v.steps ? `Step ${v.steps} is at its end.` : "Nobody has taken a step yet.");
    if (this.what.textContent !== text) this.what.textContent = text;
  }
}
