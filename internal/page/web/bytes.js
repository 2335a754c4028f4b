// The five bytes as a picture: memory at the probed place, what each CPU may fetch of it, the slot, the detour buffer,
// the CPUs as tokens, a return probe's instances as cards. A byte that changes turns, and the original flies to the slot.

const still = matchMedia("(prefers-reduced-motion: reduce)");

class FiveBytes {
  constructor(machine) {
    Object.assign(this, { machine, at: el("div", { class: "five", role: "group", "aria-label": "The probed bytes" }), chosen: 0 });
    this.asked = el("p", { class: "asked soft", role: "status" });
    this.box = el("div", { class: "strips" });
    this.at.append(this.box, this.asked);
  }

  draw(v) {
    const m = this.machine, strips = v.strips ?? [];
    this.at.hidden = strips.length === 0;
    if (strips.length === 0) return;
    this.chosen = Math.max(0, strips.findIndex((s) => s.address === (v.events[v.sub]?.site ?? strips[this.chosen]?.address)));
    const s = strips[this.chosen], lit = m.lit ?? { is: new Set(), site: 0n };
    const before = this.last && this.last.address === s.address && this.last.place === v.schedule + v.sub ? null : this.last;
    const here = v.cpus.map((c, i) => this.stands(c, i, s, v));
    const jump = s.cells[0]?.value === "e9";
    if (!m.update(this.box, "five", [s, here, [...lit.is], v.cpus.length], () => this.picture(s, here, lit, v, jump))) return;
    this.moved = () => {
      this.moved = null;
      const places = still.matches ? null : this.places();
      if (before?.places && places && before.address === s.address) this.move(before.places, places, before.cells, s);
      this.last = { address: s.address, cells: s.cells.map((c) => c.value), places, place: v.schedule + v.sub };
    };
    this.asked.textContent = "";
  }

  settle() {
    this.moved?.();
  }

  // stands says where a CPU is, or goes on after the handler in which it is: on a byte of the strip, in the slot, in the
  // detour buffer, or elsewhere.
  stands(c, i, s, v) {
    const ip = c.regs[0] ? BigInt("0x" + c.regs[0].value) : null;
    if (ip === null && s.failed?.[i] >= 0 && /^failed/.test(c.state)) return { at: "failed", cell: s.failed[i] };
    if (ip === null) return { at: /^has returned/.test(c.state) ? "returned" : /^failed/.test(c.state) ? "failed" : "outside" };
    const from = BigInt(s.address), piece = (a, kind) => a && v.code.find((x) => x.kind === kind && BigInt(x.address) === BigInt(a));
    const within = (p) => p && ip >= BigInt(p.address) && ip <= BigInt(p.address) + BigInt(p.rows.reduce((n, r) => n + r.bytes.length, 0));
    const handler = !!c.frame && v.events[v.sub]?.who === c.name && !["resume", "returned"].includes(v.events[v.sub]?.key);
    if (ip >= from && ip < from + BigInt(s.cells.length)) return { at: "cell", cell: Number(ip - from), handler };
    if (within(piece(s.slot, "slot"))) return { at: "slot", handler };
    if (within(piece(s.detour, "detour"))) return { at: "detour", handler };
    return { at: "elsewhere", where: c.where, handler };
  }

  picture(s, here, lit, v, jump) {
    const mine = lit.site === BigInt(s.address);
    const lights = (k) => mine && (lit.is.has("site") && k < 1 || lit.is.has("first") && k === 0 || lit.is.has("tail") && k > 0 && k < 5 || lit.is.has("jump") && k < 5);
    const tokens = (is) => here.map((h, i) => (is(h) ? this.token(i, h) : ""));
    const cells = s.cells.map((c, k) => el("div", { class: "byte-col" },
      el("div", { class: "stand" }, ...tokens((h) => ["cell", "failed"].includes(h.at) && h.cell === k)),
      el("button", {
        type: "button", "data-key": `byte${k}`, tabindex: k === 0 ? 0 : -1, "data-fly": `cell${k}`,
        class: ["cell", c.begins ? "begins" : "", k >= s.dcr ? "beyond" : "", c.value !== c.was ? "poked" : "", c.changed ? "changed" : "", lights(k) ? "lit" : "", s.lands?.some((l) => l.at === k) || s.failed?.includes(k) ? "landed" : "", c.value === "cc" && c.was !== "cc" ? "int3" : "", jump && k < 5 ? "jumps" : ""].join(" ").trim(),
        "aria-label": `byte +${k}: ${c.value}${c.value !== c.was ? `, originally ${c.was}` : ""}. Who wrote it?`, title: c.by ? `written by: ${c.by}` : "the original byte",
        onclick: () => this.who(s, k), onkeydown: (e) => this.key(e, k, s.cells.length),
      }, c.value),
      el("span", { class: "was" }, c.value !== c.was ? c.was : ""),
      ...s.seen.map((row, i) => (row.slice(0, 5).join() === s.cells.slice(0, 5).map((x) => x.value).join() ? "" : el("span", { class: `fetched who-${"abcd"[i]}${row[k] !== c.value ? " stale-byte" : ""}`, title: `CPU ${i} may still fetch ${row[k]}` }, row[k])))));
    const stale = s.seen.map((row, i) => (row.slice(0, 5).join() === s.cells.slice(0, 5).map((x) => x.value).join() ? null : i)).filter((i) => i !== null);
    const strip = el("div", { class: "strip" },
      el("div", { class: "row-names", "aria-hidden": "true" }, el("span", { class: "stand" }), el("span", { class: "name-cell" }, "memory"), el("span", { class: "was" }, s.cells.some((c) => c.value !== c.was) ? "was" : ""), ...stale.map((i) => el("span", { class: "fetched" }, `CPU ${i}`))),
      el("div", { class: "byte-cols" }, ...cells,
        s.ftrace ? "" : el("div", { class: "brackets" },
          el("span", { class: "bracket dcr", style: `grid-column: 1 / span ${Math.min(s.dcr, s.cells.length)}` }, ...glossed("DCR")),
          ...(s.lands ?? []).map((l, i) => el("span", { class: "lands", style: `grid-column: ${l.at + 1} / -1; grid-row: ${i + 3}`, title: `${l.text} leads into the bytes of a jump here` }, el("span", { "aria-hidden": "true" }, "▲ "), `${l.from} ${l.text.split(" ")[0]} jumps here`)),
          s.cells.length > 1 ? el("span", { class: "bracket jtpr", style: `grid-column: 2 / span ${Math.min(5, s.cells.length - 1)}` }, ...glossed("JTPR")) : "")));
    const slot = v.code.find((c) => c.kind === "slot" && c.address === s.slot), detour = v.code.find((c) => c.kind === "detour" && c.address === s.detour);
    return [
      el("div", { class: "five-part" }, el("h3", {}, s.place, s.ftrace ? el("span", { class: "soft" }, " (an fentry site)") : ""), strip),
      el("div", { class: "five-part", "data-fly": "slot" }, el("h3", {}, ...glossed("slot")), this.made(slot, lit.is.has("slot"), mine), el("div", { class: "stand" }, ...tokens((h) => h.at === "slot"))),
      el("div", { class: "five-part", "data-fly": "detour" }, el("h3", {}, ...glossed("detour buffer")), this.detour(detour, lit.is.has("detour"), mine, jump), el("div", { class: "stand" }, ...tokens((h) => h.at === "detour"))),
      el("div", { class: "five-part" }, el("h3", {}, s.pool ? "instances" : "elsewhere"), s.pool ? el("ul", { class: "cards" }, ...s.pool.map((c) => el("li", { class: c.who ? "card used" : "card" }, c.who ? el("strong", {}, c.who) : "free", c.who ? el("span", {}, ` returns to ${c.returns}`) : ""))) : "",
        el("div", { class: "stand away" }, ...here.map((h, i) => (["elsewhere", "outside", "returned"].includes(h.at) || (h.at === "failed" && h.cell === undefined) ? this.token(i, h) : "")))),
    ];
  }

  token(i, h) {
    const say = h.handler ? "handler" : { elsewhere: h.where, outside: "not begun", returned: "returned", failed: "oops" }[h.at];
    return el("span", { class: `token who-${"abcd"[i]}${h.at === "failed" ? " failed" : ""}`, "data-fly": `cpu${i}`, title: `CPU ${i}` }, `CPU ${i}${say ? ` ${say}` : ""}`);
  }

  made(c, lit, mine) {
    if (!c) return el("p", { class: "soft none" }, "none");
    return el("p", { class: `made-bytes${lit && mine ? " lit" : ""}` }, ...c.rows.map((r) => el("span", { class: "insn", title: r.text }, r.bytes.map((b) => b.value).join(" "))));
  }

  detour(c, lit, mine, jump) {
    if (!c) return el("p", { class: "soft none" }, "none");
    const from = c.groups.slice(0, 3).reduce((n, g) => n + g.n, 0), n = c.groups[3]?.n ?? 0;
    return el("p", { class: `made-bytes${lit && mine ? " lit" : ""}` }, el("span", { class: "soft" }, jump ? "⇐ e9  save, handlers, restore · " : "save, handlers, restore · "),
      ...c.rows.slice(from, from + n).map((r) => el("span", { class: "insn", title: r.text }, r.bytes.map((b) => b.value).join(" "))), el("span", { class: "soft" }, " · jump back"));
  }

  key(e, k, n) {
    const to = { ArrowRight: k + 1, ArrowLeft: k - 1 }[e.key];
    if (to === undefined || to < 0 || to >= n) return;
    e.preventDefault();
    for (const b of this.box.querySelectorAll("[data-key^=byte]")) b.tabIndex = b.dataset.key === `byte${to}` ? 0 : -1;
    this.box.querySelector(`[data-key="byte${to}"]`).focus();
  }

  // who answers who wrote a byte, and goes to that step.
  async who(s, k) {
    const c = s.cells[k], m = this.machine;
    if (!c.by) {
      this.asked.textContent = `+${k}: ${c.value} is the original byte.`;
      return;
    }
    await m.go(m.run.place(c.step, c.sub)).catch(complain);
    this.asked.textContent = `+${k}: ${c.value} was written in this step. Forward goes on from here.`;
  }

  places() {
    return new Map([...this.box.querySelectorAll("[data-fly]")].map((e) => [e.dataset.fly, e.getBoundingClientRect()]));
  }

  // move shows what changed as a motion: bytes turn, the original flies to the slot, CPUs go to their new places.
  move(places, here, was, s) {
    for (const e of this.box.querySelectorAll("[data-fly]")) {
      const name = e.dataset.fly, old = places.get(name), now = here.get(name);
      if (name.startsWith("cpu") && old && (old.left !== now.left || old.top !== now.top)) {
        e.animate([{ transform: `translate(${old.left - now.left}px, ${old.top - now.top}px)` }, { transform: "none" }], { duration: 420, easing: "ease-in-out" });
      }
    }
    s.cells.forEach((c, k) => {
      if (was[k] === undefined || was[k] === c.value) return;
      const e = this.box.querySelector(`[data-fly="cell${k}"]`);
      e.animate(c.value === "cc" ? [{ transform: "translateY(-28px)", opacity: 0 }, { transform: "none", opacity: 1 }] : [{ transform: "rotateX(90deg)" }, { transform: "none" }], { duration: 380, delay: k * 50, easing: "ease-out", fill: "backwards" });
      const slot = this.box.querySelector('[data-fly="slot"] .made-bytes');
      if (c.value !== "cc" || !slot || was[k] !== c.was) return;
      const a = e.getBoundingClientRect(), b = slot.getBoundingClientRect(), fly = el("span", { class: "flying", "aria-hidden": "true" }, c.was);
      this.at.append(fly);
      const zero = this.at.getBoundingClientRect();
      fly.animate([{ transform: `translate(${a.left - zero.left}px, ${a.top - zero.top}px)` }, { transform: `translate(${b.left - zero.left}px, ${b.top - zero.top}px)`, opacity: 0.6 }], { duration: 650, easing: "ease-in-out" }).onfinish = () => fly.remove();
    });
  }
}
