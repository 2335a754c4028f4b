// Links from a machine's probes to Ask, which says why a probe is there and how it runs.

const probed = /^\s*(?:kprobe|kretprobe|jprobe)\s+([^\s+:]+)(?:\+(0x[0-9a-f]+|\d+))?/;

function whys(view, scenario) {
  const links = (scenario?.probes ?? "").split("\n").flatMap((line) => {
    const m = probed.exec(line);
    if (!m) return [];
    const state = { source: "image", image: scenario.image ?? "", build: scenario.build ?? "", function: m[1], release: scenario.release, at: Number(m[2] ?? 0) };
    return [el("a", { href: `#ask?${new URLSearchParams(Object.entries(state).filter(([, v]) => v !== "" && v !== undefined))}` }, m[1] + (m[2] ? `+${m[2]}` : "")), " "];
  });
  $(`${view}-why`).replaceChildren(...(links.length ? ["May a probe be there, and why? Ask about ", ...links] : []));
}

addEventListener("remembered", ({ detail }) => {
  if (detail.view === "watch") whys("watch", watch.machine.scenario);
  if (detail.view === "lesson") whys("lesson", lesson.machine.scenario);
});
