// Drives Firefox for the tests in Go: a request in a line of JSON on standard input, its answer in a line on
// standard output. puppeteer-core speaks WebDriver BiDi with the browser (make test-page fetches both).
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [, , puppeteer, firefox] = process.argv;
const { launch } = (await import(pathToFileURL(puppeteer))).default;
const offline = { "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9, "network.proxy.allow_hijacking_localhost": true };

let browser, page;
const said = [];
const requests = {
  // open opens an address in a fresh profile: a file with the network off.
  async open({ address, width, height, still }) {
    await browser?.close();
    const prefs = { ...(address.startsWith("file:") ? offline : {}), "ui.prefersReducedMotion": still ? 1 : 0 };
    browser = await launch({ browser: "firefox", executablePath: firefox, headless: true, extraPrefsFirefox: prefs });
    page = (await browser.pages())[0] ?? (await browser.newPage());
    await page.setViewport({ width, height });
    page.on("console", (m) => said.push(`${m.type()}: ${m.text()}`));
    page.on("pageerror", (e) => said.push(String(e)));
    page.on("request", (r) => address.startsWith("file:") && r.url().startsWith("http") && said.push(`asks for ${r.url()}`));
    await page.goto(address);
    return browser.version();
  },
  eval: ({ code }) => page.evaluate(code),
  // key presses a key.
  key: ({ key }) => page.keyboard.press(key),
  click: ({ at }) => page.click(at),
  width: ({ width, height }) => page.setViewport({ width, height }),
  picture: ({ path }) => page.screenshot({ path, fullPage: true }).then(() => true),
  said: async () => said.splice(0),
};

for await (const line of createInterface({ input: process.stdin })) {
  const q = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await requests[q.do](q)) ?? null };
  } catch (e) {
    answer = { error: String(e.message ?? e) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser?.close();
