// The program runs in a worker, so that the page stays alive for any input.

const program = { worker: null, module: null, waiting: new Map(), next: 1, ready: null };

// start starts the program, also again after it has ended.
function start() {
  program.ready = (async () => {
    const code = document.getElementById("worker").textContent;
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const worker = new Worker(url);
    program.worker = worker;
    await new Promise((done, fail) => {
      worker.onerror = (e) => fail(new Error(e.message));
      worker.onmessage = ({ data }) => {
        if (data.unpacked) return unpacked(data.unpacked);
        if (data.ready) {
          program.module ??= data.module;
          return done();
        }
        if (data.failed) return fail(new Error(data.failed));
        if (data.ended) return ended();
        const w = program.waiting.get(data.id);
        program.waiting.delete(data.id);
        const answer = JSON.parse(data.answer);
        if (answer.error !== undefined) w.fail(Object.assign(new Error(answer.error), { offer: answer.offer }));
        else w.done(answer);
      };
      worker.postMessage(program.module ? { module: program.module } : { text: document.getElementById("wasm").textContent.trim() });
    });
    document.getElementById("wasm").textContent = ""; // the module is there
    document.getElementById("unpacking").hidden = true;
    URL.revokeObjectURL(url);
  })();
  return program.ready;
}

// unpacked shows how far the program is unpacked.
function unpacked(part) {
  document.getElementById("unpacking").hidden = false;
  document.querySelector("#unpacking progress").value = part;
}

// ended: the program has ended, most likely for want of memory.
function ended() {
  program.worker.terminate();
  const waiting = [...program.waiting.values()];
  program.waiting.clear();
  start();
  for (const w of waiting) w.fail(new Error("The program ended before it had an answer: there was not enough memory. It has been started again."));
}

// question sends a question to the program. file is an ArrayBuffer, which the program takes.
async function question(request, file) {
  await program.ready;
  return new Promise((done, fail) => {
    const id = program.next++;
    program.waiting.set(id, { done, fail });
    const bytes = file && new Uint8Array(file);
    program.worker.postMessage({ id, request: JSON.stringify(request), file: bytes }, bytes ? [file] : []);
  });
}
