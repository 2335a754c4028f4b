// The worker: unpacks the program, and answers one question after the other.

// unpack compiles the program while it is unpacked from compressed text, so that it is never there as a whole, and says how far it is.
async function unpack(text) {
  const gunzip = new DecompressionStream("gzip");
  const module = WebAssembly.compileStreaming(new Response(gunzip.readable, { headers: { "Content-Type": "application/wasm" } }));
  const writer = gunzip.writable.getWriter();
  const piece = 1 << 18; // a multiple of 4 characters
  for (let at = 0; at < text.length; at += piece) {
    const raw = atob(text.slice(at, at + piece));
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    await writer.write(bytes);
    postMessage({ unpacked: Math.min(1, (at + piece) / text.length) });
  }
  await writer.close();
  return module;
}

onmessage = async ({ data }) => {
  if (data.text || data.module) {
    try {
      const go = new Go();
      const module = data.module ?? await unpack(data.text);
      const instance = await WebAssembly.instantiate(module, go.importObject);
      go.run(instance).then(() => postMessage({ ended: true }));
      postMessage({ ready: true, module: data.module ? null : module });
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
