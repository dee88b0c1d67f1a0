// Shows every page of a CDXJ index in the engine of ReplayWeb.page, from a WACZ, and prints one line of JSON per view.
// Arguments: the WACZ, and the index of the archive it was made from.
import "fake-indexeddb/auto";
import fs from "node:fs";
import http from "node:http";

globalThis.self = globalThis;
globalThis.location ??= { href: "http://127.0.0.1/", origin: "http://127.0.0.1" };
const print = console.log;
console.log = console.error;
const { WorkerLoader } = await import("@webrecorder/wabac/swlib");

const [wacz, index] = process.argv.slice(2);
const bytes = fs.readFileSync(wacz);
const server = http.createServer((request, response) => {
  const range = /bytes=(\d*)-(\d*)/.exec(request.headers.range ?? "");
  let [from, to] = [0, bytes.length - 1];
  if (range) {
    from = range[1] === "" ? bytes.length - Number(range[2]) : Number(range[1]);
    to = range[1] !== "" && range[2] ? Math.min(Number(range[2]), to) : to;
  }
  response.writeHead(range ? 206 : 200, {
    "Content-Length": to - from + 1,
    "Accept-Ranges": "bytes",
    ...(range && { "Content-Range": `bytes ${from}-${to}/${bytes.length}` }),
  });
  response.end(request.method === "HEAD" ? undefined : bytes.subarray(from, to + 1));
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

const sourceUrl = `http://127.0.0.1:${server.address().port}/export.wacz`;
const loader = new WorkerLoader({ addEventListener() {} });
await loader.addCollection({ name: "pages", file: { sourceUrl, loadUrl: sourceUrl } }, () => {});
const { store } = await loader.loadColl("pages");

for (const line of fs.readFileSync(index, "utf8").split("\n").filter(Boolean)) {
  const time = line.split(" ", 2)[1];
  const { url } = JSON.parse(line.slice(line.indexOf("{")));
  if (!url.startsWith("http")) continue;
  const wanted = { url, timestamp: time, request: new Request(url), mode: "id_", cookie: "", isProxyOrigin: true };
  const found = await store.getResource(wanted, "", {}, { noRedirect: true });
  const { text } = (await found?.getText(true)) ?? { text: "" };
  const shown = found?.date?.toISOString().replace(/\D/g, "").slice(0, 14);
  print(JSON.stringify({ time, url, status: found?.status ?? 0, text, shown }));
}
process.exit(0);
