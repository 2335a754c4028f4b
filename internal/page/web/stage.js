// The stage: code, slot and detour buffer, CPUs. Each scrolls in its own pane, and the page does not.

// Panes are the code on the left, the code that kprobes has made, and the CPUs.
class Panes {
  constructor(machine) {
    this.machine = machine;
    this.pane = ["functions", "made", "lanes"].map((name) => el("div", { class: `pane ${name}` }));
    this.at = el("div", { class: "panes" }, ...this.pane);
    this.parts = [new CodePane(machine, this.pane[0], "functions", (c) => c.kind === "function"), new CodePane(machine, this.pane[1], "made", (c) => c.kind !== "function"), new CPUPane(machine, this.pane[2])];
  }

  draw(v) {
    for (const p of this.parts) p.draw(v);
  }

  settle(v) {
    for (const p of this.parts) p.settle?.(v);
  }
}

// details stay as open as the reader has left them.
function details(machine, key, summary, ...inside) {
  machine.open ??= new Set();
  return el("details", { open: machine.open.has(key), ontoggle: (e) => (e.target.open ? machine.open.add(key) : machine.open.delete(key)) },
    el("summary", { "data-key": key }, summary), ...inside);
}

// CodePane shows instructions in fixed columns: an arrow for each CPU, place, bytes, words.
class CodePane {
  constructor(machine, at, key, takes) {
    Object.assign(this, { machine, at, key, takes, rows: [], texts: [] });
  }

  draw(v) {
    const list = v.code.filter(this.takes);
    const texts = list.map((c) => c.rows.map((r) => JSON.stringify(r)));
    const shape = [v.module, list.map((c) => [c.name, c.address, c.rows.map((r) => r.place)])];
    if (this.machine.update(this.at, this.key, shape, () => this.sections(list, v))) this.rows = list.map((c, n) => [...this.at.querySelectorAll(`[data-code="${n}"] tr[data-row]`)]);
    else list.forEach((c, n) => c.rows.forEach((r, i) => {
      if (this.texts[n][i] === texts[n][i]) return;
      const tr = this.row(r, i);
      this.rows[n][i].replaceWith(tr);
      this.rows[n][i] = tr;
    }));
    this.texts = texts;
    this.list = list;
  }

  settle(v) {
    this.look(v, this.list);
  }

  // look brings the row that matters into the pane: that of the CPU that has stepped, else the probed one.
  look(v, list) {
    const last = v.schedule.match(/([a-d])\d*$/)?.[1];
    const cpu = last ? `CPU ${"abcd".indexOf(last)}` : null;
    let best = null, most = 0;
    list.forEach((c, n) => c.rows.forEach((r, i) => {
      const is = cpu && r.cpus?.some((x) => x.startsWith(cpu)) ? 4 : r.bytes.some((b) => b.changed) ? 3 : r.cpus ? 2 : r.probe ? 1 : 0;
      if (is > most) [best, most] = [this.rows[n][i], is];
    }));
    if (!best) return;
    const group = best.closest("details");
    if (group && !group.open && most > 1) group.open = true;
    const pane = this.at, top = best.getBoundingClientRect().top - pane.getBoundingClientRect().top + pane.scrollTop;
    if (pane.scrollHeight <= pane.clientHeight) return;
    if (top < pane.scrollTop + 40 || top + best.offsetHeight > pane.scrollTop + pane.clientHeight - 20) pane.scrollTop = top - pane.clientHeight / 3;
  }

  sections(list, v) {
    if (list.length === 0) return [el("h3", {}, this.key === "made" ? "Slot and detour buffer" : "Code"), el("p", { class: "soft" }, this.key === "made" ? (v.module === "unregister" ? "None: the function tracer calls the probe, and nothing is copied." : "There is none before a probe is registered.") : "")];
    return list.map((c, n) => el("section", { "aria-label": c.name, "data-code": n },
      el("h3", {}, c.name, " ", el("span", { class: "soft" }, c.address)),
      ...this.groups(c)));
  }

  // groups are the parts of a detour buffer, folded but for the copied instructions.
  groups(c) {
    if (!c.groups) return [this.table(c, c.rows, 0, `Code of ${c.name}`)];
    let at = 0;
    return c.groups.map((g) => {
      const first = at;
      at += g.n;
      const rows = c.rows.slice(first, at);
      if (g.n <= 2) return el("div", { class: "part" }, el("p", { class: "soft" }, g.name), this.table(c, rows, first, `${g.name}, of the ${c.name}`));
      return details(this.machine, `group ${c.name} ${g.name}`, `${g.name} (${g.n})`, this.table(c, rows, first, `${g.name}, of the ${c.name}`));
    });
  }

  table(c, rows, first, name) {
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, el("table", { class: "code fixed" },
      el("colgroup", {}, ...["place", "cpus", "bytes", "words"].map((n) => el("col", { class: `of-${n}` }))),
      el("thead", { class: "unseen" }, el("tr", {}, ...["place", "CPUs here", "bytes", "instruction"].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...rows.map((r, i) => this.row(r, first + i)))));
  }

  row(r, i) {
    return el("tr", { "data-row": i, class: [r.cpus ? "here" : "", r.region ? "region" : ""].join(" ").trim() || null },
      el("th", { scope: "row" }, r.place),
      el("td", { class: "at" }, r.probe ? el("span", { class: "dot", title: "a probe is registered here" }, "●", el("span", { class: "unseen" }, " probe ")) : "", ...(r.cpus ?? []).map((c) => token(c))),
      el("td", { class: "bytes" }, ...r.bytes.flatMap((b) => [b.changed || b.poked ? el("span", { class: (b.changed ? "changed " : "") + (b.poked ? "poked" : "") }, b.value) : b.value, " "])),
      el("td", {}, r.text, r.was ? el("div", { class: "soft" }, `was ${r.was}`) : ""));
  }
}

// token is a CPU where it stands: "CPU 0", or "CPU 0 (+1)" inside of an instruction.
function token(text) {
  const [, n, inside] = text.match(/^CPU (\d)(?: \((.*)\))?$/);
  return el("span", { class: `token who-${"abcd"[n]}`, title: text }, el("span", { "aria-hidden": "true" }, `▶${n}${inside ? inside : ""}`), el("span", { class: "unseen" }, `${text} `));
}

// CPUPane shows the CPUs, and what changed of their registers.
class CPUPane {
  constructor(machine, at) {
    Object.assign(this, { machine, at });
  }

  draw(v) {
    const m = this.machine;
    m.update(this.at, "lanes", v.cpus.length, () => {
      for (const key of m.drawn.keys()) if (key.startsWith("lane ")) m.drawn.delete(key);
      return [...v.cpus.map((c) => el("div", { class: "lane", role: "group", "aria-label": c.name })), el("div", { class: "lane", role: "group", "aria-label": "Probes" }), el("div", { class: "lane", role: "group", "aria-label": "Log" })];
    });
    const sections = this.at.querySelectorAll(":scope > .lane");
    v.cpus.forEach((c, i) => m.update(sections[i], `lane ${i}`, c, () => this.lane(c, i)));
    m.update(sections[v.cpus.length], "lane probes", v.probes, () => [
      el("h3", {}, v.probes.length === 1 ? "Probe" : "Probes"),
      ...v.probes.map((p) => el("p", {}, el("code", {}, p.text), `: ${p.state}; ${p.hits} ${p.hits === 1 ? "hit" : "hits"}, ${p.missed} missed`))]);
    const log = sections[v.cpus.length + 1];
    m.update(log, "lane log", v.log, () => [details(m, "log", `The kernel's log, and the handlers' lines (${v.log.length})`, v.log.length
      ? el("ol", { class: "mono" }, ...v.log.map((l) => el("li", l.new ? { class: "changed" } : {}, l.text))) : el("p", { class: "soft" }, "Nothing yet."),
    el("p", { class: "soft" }, "State ", el("code", { class: "hash" })))]);
    log.querySelector(".hash").textContent = v.hash;
  }

  lane(c, i) {
    const changed = c.regs.filter((r) => r.changed && r.name !== "ip" && r.name !== "flags");
    return [
      el("h3", {}, el("span", { class: `chip who-${"abcd"[i]}` }, c.name), " ", el("code", {}, c.call)),
      el("p", {}, c.state, c.where ? ", at " : "", c.where ? el("strong", { class: c.regs[0]?.changed ? "changed" : null }, c.where) : "", c.frame ? el("span", { class: "soft" }, " (the interrupted code's registers, as the handler gets them)") : ""),
      ...c.fetch.map((f) => el("p", f.old ? { class: "old" } : { class: "soft" }, `fetches at ${f.place}: `, el("code", {}, `${f.bytes}  ${f.insn}`), f.old ? " (it has not seen the new bytes yet)" : "")),
      changed.length ? el("ul", { class: "values", "aria-label": `What changed of ${c.name}` }, ...changed.map((r) => el("li", {}, el("strong", {}, r.name), " ", el("span", { class: "changed" }, r.value), r.means ? el("span", { class: "soft" }, ` ${r.means}`) : ""))) : "",
      c.regs.length ? details(this.machine, `registers ${i}`, "All registers and the stack", this.values(c.regs, `Registers of ${c.name}`), this.values(c.stack, `Stack of ${c.name}`)) : ""];
  }

  values(list, name) {
    return el("ul", { class: "values", "aria-label": name }, ...list.map((w) => el("li", {},
      el("strong", {}, w.name), " ", el("span", w.changed ? { class: "changed" } : {}, w.value), w.changed ? el("span", { class: "unseen" }, " (changed)") : "",
      w.means ? el("span", { class: "soft" }, ` ${w.means}`) : "")));
  }
}
