// The worker: the program, and one question after the other.
onmessage = async ({ data }) => {
  if (data.wasm) {
    try {
      const go = new Go();
      const { instance } = await WebAssembly.instantiate(data.wasm, go.importObject);
      go.run(instance).then(() => postMessage({ ended: true }));
      postMessage({ ready: true });
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
