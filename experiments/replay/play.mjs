// Plays a WACZ from Perennial's server in ReplayWeb.page, in headless Chromium, and prints what appeared.
//
//     node play.mjs PERENNIAL [CHROMIUM]
//
// A small site (a page with a stylesheet, a picture and a script that fetches words; its text changes every hour) is crawled
// for six virtual hours and served. npm fetches replaywebpage and playwright-core into a temporary folder. Three origins take
// part: the player's page, the archive's server and, inside the player, the replayed page. Requests to any other origin are
// counted and must be zero.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const PLAYER = "replaywebpage@2.4.6";
const DRIVER = "playwright-core@1.65.1";
const [perennial, chromium = "/usr/bin/chromium"] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "play-"));
const START = Date.parse("2026-01-01T00:00:00Z");
const DOT = Buffer.from("R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==", "base64");

function site(request) {
  const now = Date.parse(request.headers["perennial-time"] ?? "2026-01-01T00:00:00Z");
  const hour = Math.floor((now - START) / 3_600_000);
  const page =
    `<!DOCTYPE html><title>Hour ${hour}</title><link rel="stylesheet" href="/look.css"><h1>The news of hour ${hour}</h1>` +
    `<p>${"Words of this hour, and enough of them to be a page. ".repeat(20)}</p><img src="/dot.gif" width="40" height="40">` +
    `<p id="late">nothing yet</p><script src="/late.js"></script><a href="/second">second</a>`;
  return {
    "/": ["text/html", page],
    "/second": ["text/html", `<!DOCTYPE html><title>Second</title><link rel="stylesheet" href="/look.css"><h1>The second page</h1><p>${"More words. ".repeat(80)}</p>`],
    "/look.css": ["text/css", "h1 { color: rgb(1, 102, 3) }"],
    "/late.js": ["text/javascript", "document.getElementById('late').textContent = 'the script ran'"],
    "/dot.gif": ["image/gif", DOT],
  }[new URL(request.url, "http://x").pathname];
}

const listening = (answer) =>
  new Promise((resolve) => {
    const server = http.createServer(answer);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });

const web = await listening((request, response) => {
  const found = site(request);
  response.writeHead(found ? 200 : 404, { "Content-Type": found?.[0] ?? "text/plain" });
  response.end(found?.[1] ?? "");
});
const host = `127.0.0.1:${web.address().port}`;

function run(...wanted) {
  return new Promise((resolve, reject) => {
    const child = spawn(perennial, ["--archive", path.join(folder, "archive"), ...wanted], { stdio: ["ignore", "pipe", "inherit"] });
    let told = "";
    child.stdout.on("data", (text) => (told += text));
    child.on("error", reject).on("close", () => resolve(told));
  });
}

await run("init");
await run("add", `http://${host}/`, "--allow-private");
await run("run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0", "--strategy", "fixed-interval", "--interval", "1h", "--time-limit", "6h");
web.close();

// The player is three files of its package, served by the embedding page.
execFileSync("npm", ["pack", "--silent", PLAYER], { cwd: folder });
execFileSync("tar", ["xzf", fs.readdirSync(folder).find((name) => name.endsWith(".tgz"))], { cwd: folder });
execFileSync("npm", ["install", "--silent", "--prefix", folder, DRIVER]);
const { chromium: driver } = createRequire(path.join(folder, "package.json"))("playwright-core");
const asked = [];
const player = await listening((request, response) => {
  const name = new URL(request.url, "http://x").pathname;
  const file = { "/ui.js": "ui.js", "/replay/ui.js": "ui.js", "/replay/sw.js": "sw.js", "/replay/": "index.html" }[name];
  if (file) {
    response.writeHead(200, { "Content-Type": file.endsWith(".js") ? "text/javascript" : "text/html" });
    response.end(fs.readFileSync(path.join(folder, "package", file)));
    return;
  }
  const wanted = new URL(request.url, "http://x").searchParams;
  const attributes = ["source", "url", "ts"].map((name) => `${name}="${wanted.get(name) ?? ""}"`).join(" ");
  response.writeHead(name === "/" ? 200 : 404, { "Content-Type": "text/html" });
  response.end(`<!DOCTYPE html><script src="/ui.js"></script><replay-web-page replayBase="/replay/" embed="replayonly" ${attributes}></replay-web-page>`);
});
const playerOrigin = `http://localhost:${player.address().port}`;

const server = spawn(perennial, ["--archive", path.join(folder, "archive"), "--json", "serve", "--listen", "127.0.0.1:0", "--allow-origin", playerOrigin]);
const origin = await new Promise((resolve) => {
  let told = "";
  server.stdout.on("data", (text) => {
    told += text;
    if (told.trimEnd().endsWith("}")) resolve(JSON.parse(told).address);
  });
});

async function played(browser, source, url, ts) {
  const context = await browser.newContext();
  const page = await context.newPage();
  context.on("request", (request) => asked.push(request));
  const query = new URLSearchParams({ source, url, ts });
  await page.goto(`${playerOrigin}/?${query}`);
  let seen = null;
  for (let tries = 0; tries < 120 && !seen; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    for (const frame of page.frames().filter((frame) => frame.url().includes("mp_/"))) {
      seen = await frame
        .evaluate(() => {
          const [heading, picture] = [document.querySelector("h1"), document.querySelector("img")];
          if (!heading || document.readyState !== "complete") return null;
          return {
            heading: heading.textContent,
            color: getComputedStyle(heading).color,
            script: document.getElementById("late")?.textContent ?? null,
            picture: picture ? picture.naturalWidth : null,
          };
        })
        .catch(() => null);
    }
  }
  await context.close();
  return seen;
}

const browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox"] });
let n_wrong = 0;
const shown = (hour) => ({ heading: `The news of hour ${hour}`, color: "rgb(1, 102, 3)", script: "the script ran", picture: 1 });
const second = { heading: "The second page", color: "rgb(1, 102, 3)", script: null, picture: null };
const page = `http://${host}/`;
const of = (query) => `${origin}/wacz/play.wacz?${query}`;
for (const [what, source, url, ts, wanted] of [
  ["site, first hour", of(`site=${host}`), page, "20260101000000", shown(0)],
  ["site, fourth hour", of(`site=${host}`), page, "20260101030000", shown(3)],
  ["site, another page", of(`site=${host}`), `${page}second`, "20260101030000", second],
  ["page, third hour", of(`url=${encodeURIComponent(page)}`), page, "20260101020000", shown(2)],
]) {
  const seen = await played(browser, source, url, ts);
  const is_right = JSON.stringify(seen) === JSON.stringify(wanted);
  n_wrong += !is_right;
  console.log(`${is_right ? "right" : "WRONG"}: ${what}: ${JSON.stringify(seen)}`);
}
await browser.close();

const of_archive = asked.filter((request) => request.url().startsWith(origin));
const ranges = of_archive.filter((request) => request.headers().range);
const elsewhere = asked.filter((request) => ![origin, playerOrigin, "data:", "blob:"].some((known) => request.url().startsWith(known)));
console.log(`${of_archive.length} requests to the archive's server, ${ranges.length} of them for a range; ${elsewhere.length} to anybody else`);
elsewhere.slice(0, 5).forEach((request) => console.log(`  ${request.url()}`));
server.kill();
player.close();
fs.rmSync(folder, { recursive: true });
process.exit(n_wrong + elsewhere.length ? 1 : 0);
