// The program runs in a worker, so that the page stays alive for any input.

const program = { worker: null, module: null, waiting: new Map(), next: 1, ready: null };

// start starts the program, also again after it has ended.
function start() {
  program.ready = (async () => {
    const code = document.getElementById("worker").textContent;
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const worker = new Worker(url); // it gets ready while another one unpacks
    program.module ??= await unpack(new Worker(url));
    document.getElementById("unpacking").hidden = true;
    await employ(worker, { module: program.module }, "ready", heard);
    program.worker = worker;
    URL.revokeObjectURL(url);
  })();
  return program.ready;
}

// unpack has the program unpacked by a worker of its own: what it leaves behind goes with it. The text is taken out of
// the page, piece by piece it goes to the worker.
async function unpack(worker) {
  const text = document.getElementById("wasm");
  const packed = new Blob([text.textContent]);
  text.textContent = "";
  const module = await employ(worker, { packed }, "module", (data) => unpacked(data.unpacked));
  worker.terminate();
  return module;
}

// employ gives a worker its first message, and waits for the answer that has the field done. Others go to hear.
function employ(worker, message, done, hear) {
  return new Promise((employed, fail) => {
    worker.onerror = (e) => fail(new Error(e.message));
    worker.onmessage = ({ data }) => {
      if (data.failed) fail(new Error(data.failed));
      else if (data[done]) employed(data[done]);
      else hear(data);
    };
    worker.postMessage(message);
  });
}

// heard gives an answer to the question that waits for it.
function heard(data) {
  if (data.ended) return ended();
  const w = program.waiting.get(data.id);
  program.waiting.delete(data.id);
  const answer = JSON.parse(data.answer);
  if (answer.error !== undefined) w.fail(Object.assign(new Error(answer.error), { offer: answer.offer }));
  else w.done(answer);
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
