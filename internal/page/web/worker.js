// A worker: unpacks the program, or has it, and answers one question after the other.

// unpack compiles the program while it is unpacked from compressed text, so that it is never there as a whole, and says how far it is.
async function unpack(packed) {
  const gunzip = new DecompressionStream("gzip");
  const module = WebAssembly.compileStreaming(new Response(gunzip.readable, { headers: { "Content-Type": "application/wasm" } }));
  const writer = gunzip.writable.getWriter();
  const piece = 1 << 18; // a multiple of 4 characters
  const read = (at) => packed.slice(at, at + piece).text();
  let next = read(0);
  for (let at = 0; at < packed.size; at += piece) {
    const raw = atob(await next);
    next = read(at + piece);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    await writer.write(bytes);
    postMessage({ unpacked: Math.min(1, (at + piece) / packed.size) });
  }
  await writer.close();
  return module;
}

// begin runs the program.
async function begin(module) {
  const go = new Go();
  const instance = await WebAssembly.instantiate(module, go.importObject);
  go.run(instance).then(() => postMessage({ ended: true }));
}

onmessage = async ({ data }) => {
  if (data.packed || data.module) {
    try {
      if (data.packed) postMessage({ module: await unpack(data.packed) });
      else await begin(data.module).then(() => postMessage({ ready: true }));
    } catch (e) {
      postMessage({ failed: String(e) });
    }
    return;
  }
  try {
    postMessage({ id: data.id, answer: kprobelab(data.request, data.file) });
  } catch (e) {
    postMessage({ ended: true });
  }
};
