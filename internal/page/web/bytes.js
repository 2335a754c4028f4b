// The five bytes as a picture.
class FiveBytes {
  constructor(machine) {
    Object.assign(this, { machine, at: el("div", { class: "five" }) });
  }

  draw() {}
}
