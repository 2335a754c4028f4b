// Links from a machine's probes to Ask, which says why a probe is there and how it runs.

const probed = /^\s*(?:kprobe|kretprobe|jprobe)\s+([^\s+:]+)(?:\+(0x[0-9a-f]+|\d+))?/;

function whys(view, scenario) {
  const places = new Map((scenario?.probes ?? "").split("\n").map((line) => probed.exec(line)).filter(Boolean).map((m) => [m[1] + (m[2] ? `+${m[2]}` : ""), m]));
  const links = [...places].flatMap(([name, m]) => {
    const state = { source: "image", image: scenario.image ?? "", build: scenario.build ?? "", function: m[1], release: scenario.release, at: Number(m[2] ?? 0) };
    return [el("a", { href: `#ask?${new URLSearchParams(Object.entries(state).filter(([, v]) => v !== "" && v !== undefined))}` }, name), " "];
  });
  $(`${view}-why`).replaceChildren(...(links.length ? ["May a probe be there, and why? Ask about ", ...links] : []));
}

addEventListener("remembered", ({ detail }) => {
  if (detail.view === "watch") whys("watch", watch.machine.scenario);
  if (detail.view === "lesson") whys("lesson", lesson.machine.scenario);
});
