// Plays the page of playground/dist in Chromium, on a wide and on a narrow screen: a fault, its fix, texts that are no documents.
import assert from "node:assert/strict";
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = join(fileURLToPath(new URL(".", import.meta.url)), "dist");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

const server = createServer((request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  const file = join(ROOT, normalize(path === "/" ? "/index.html" : path));
  const isKnown = file.startsWith(ROOT) && existsSync(file);
  response.writeHead(isKnown ? 200 : 404, { "content-type": TYPES[extname(file)] ?? "text/plain" });
  if (isKnown) createReadStream(file).pipe(response);
  else response.end();
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"],
});

for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
  const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => assert.ok(request.url().startsWith(address), request.url()));
  const summary = page.locator("#summary");
  const says = (text) => page.waitForFunction((text) => document.getElementById("summary").textContent.includes(text), text);

  await page.goto(address);
  await says("1 error in loop.json");
  assert.match(await page.locator("#faults li").first().textContent(), /`?lookup_ordr`? is not found/);
  await page.getByRole("button", { name: "Explain" }).first().click();
  assert.match(await page.locator("article").textContent(), /Instead/);
  await page.getByRole("button", { name: /^Replace with/ }).first().click();
  await says("No errors or warnings in loop.json");

  await page.fill("#text", "{ é broken <img src=x onerror=alert(1)>");
  await says("error");
  assert.equal(await page.locator("#faults img").count(), 0);
  await page.fill("#text", `{"type": "loop", "properties": ${"[".repeat(20000)}`);
  await says("1 error");
  await page.fill("#text", " ".repeat(1100000));
  await says("1024 KiB");
  await page.fill("#text", "{}");
  await says("in loop.json");

  // What was typed is there again, also in another tab.
  await page.getByRole("tab", { name: "loopctl.json" }).click();
  await page.fill("#text", "{}");
  await says("loopctl.json");
  await page.waitForFunction(() => JSON.parse(localStorage.getItem("loopctl.playground"))["loopctl.json"] === "{}");
  await page.reload();
  await page.getByRole("tab", { name: "loopctl.json" }).click();
  assert.equal(await page.locator("#text").inputValue(), "{}");
  await page.getByRole("button", { name: "Reset" }).click();
  await says("1 error in loop.json");

  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
  assert.deepEqual(faults, []);
  assert.ok(await summary.isVisible());
  await page.close();
}
await browser.close();
server.close();
console.log("the page works at 1280 and 390 pixels");
