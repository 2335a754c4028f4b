// Film: what has happened in a run, which was written by kprobelab run --film.

const film = { machine: null, about: null };

// Reel is a machine that has taken its steps already: its order cannot be changed.
class Reel extends Machine {
  get fixed() { return true; }
}

views.film = {
  begin() {
    film.machine = new Reel($("film-machine"), (m) => {
      complain(null);
      if (place().view === "film") remember("film", { film: m.scenario.film === film.about.example ? "" : m.scenario.film, ...m.way(), schedule: m.view.schedule });
    });
    $("film-file").addEventListener("change", (e) => e.target.files[0] && openFilm(e.target.files[0]));
  },

  async show(state) {
    if (!hello) return;
    const name = state.get("film") || hello.film;
    if (film.about?.name !== name) film.about = await question({ do: "openfilm", name });
    describe();
    film.machine.goBy(state, "protocol");
    await film.machine.show({ do: "film", film: name }, state.get("schedule") ?? "", -1);
  },
};

function describe() {
  const a = film.about;
  $("film-about").replaceChildren(
    a.name === a.example ? "This one is part of the program: openat and read" : el("bdi", {}, a.name),
    ` on ${a.kernel}${a.release ? `, Linux ${a.release}` : ""}, ${a.cpus} ${a.cpus === 1 ? "CPU" : "CPUs"}: ${a.states} states, ${a.events} of them steps of the protocol.`,
    a.name === a.example ? "" : " ", a.name === a.example ? "" : el("a", { href: "#film" }, "Play the film of the program"));
}

// openFilm opens a film that was chosen or dropped.
async function openFilm(file) {
  complain(null);
  try {
    const about = await question({ do: "openfilm", name: file.name }, await file.arrayBuffer());
    film.about = about;
    location.hash = `film?film=${encodeURIComponent(file.name)}`;
    await turn(); // also where the address is the same
  } catch (e) {
    complain(e);
  }
}
