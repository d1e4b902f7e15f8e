import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { knownChains } from "@coinslot/protocol";
import { expect, it, onTestFinished } from "vitest";
import { RefusedError } from "../api/refusal.ts";
import { send } from "../testing/visit-console.ts";
import { openAssets } from "./assets.ts";
import { sendShell } from "./shell.ts";

/** Serves the pages of a folder as they would be built. */
async function serve(base: string, { script = "export {};" } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "coinslot-console-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (name: string, content: string) => writeFileSync(join(folder, name), content);
  write("main-B4x_9z.js", script);
  write("main-C1.css", "body {}");
  write("secret.json", "{}");
  const entry = { file: "assets/main-B4x_9z.js", isEntry: true, css: ["assets/main-C1.css"] };
  write("manifest.json", JSON.stringify({ "main.tsx": entry }));
  const assets = openAssets(pathToFileURL(`${folder}/`));
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    const origin = "http://localhost";
    const place = { origin, linkOrigin: origin, isLoopback: true };
    const visit = { request, response, place, base, path, query: new URLSearchParams() };
    try {
      if (path.startsWith("/assets/")) assets.send(visit, path.slice("/assets/".length));
      else sendShell(visit, assets);
    } catch (error) {
      response.writeHead(error instanceof RefusedError ? error.refusal.status : 500).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("names the hashed files below its mount, for scripts with its nonce alone", async () => {
  const url = await serve("/_coinslot");
  const { status, text, headers } = await send(url, { path: "/payments/1" });
  expect(status).toBe(200);
  const nonce = /nonce="([^"]+)"/.exec(text)?.[1];
  expect(headers["content-security-policy"]).toContain(`script-src 'nonce-${nonce}'`);
  expect(headers["cache-control"]).toBe("no-store");
  expect(text).toContain(`nonce="${nonce}" src="/_coinslot/assets/main-B4x_9z.js"`);
  expect(text).toContain('href="/_coinslot/assets/main-C1.css"');
  expect(text).toContain('<meta name="coinslot-base" content="/_coinslot">');
  expect((await send(url, { path: "/" })).text).not.toContain(nonce);
});

it("names each known chain and its coin to the page", async () => {
  const { text } = await send(await serve(""), { path: "/" });
  const content = /<meta name="coinslot-networks" content="([^"]+)">/.exec(text)?.[1] ?? "";
  const networks: unknown = JSON.parse(content.replaceAll("&quot;", '"'));
  const expected = knownChains.map(({ network, name, nativeCurrency }) => [
    network,
    { name, coin: nativeCurrency.symbol },
  ]);
  expect(networks).toEqual(Object.fromEntries(expected));
});

it("serves hashed files for a year, and nothing beside them", async () => {
  const url = await serve("");
  const { headers, text } = await send(url, { path: "/assets/main-B4x_9z.js" });
  expect(text).toBe("export {};");
  expect(headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "cache-control": "public, max-age=31536000, immutable",
  });
  for (const name of ["secret.json", "none.js", "..%2fpackage.js", "a/b.js", ".js", ""]) {
    expect(await send(url, { path: `/assets/${name}` })).toMatchObject({ status: 404 });
  }
});

it("compresses what compression makes smaller, for those who take it", async () => {
  const url = await serve("", { script: "export {};\n".repeat(1_000) });
  const path = "/assets/main-B4x_9z.js";
  const gzip = (header: string) => send(url, { path, headers: { "Accept-Encoding": header } });
  for (const header of ["gzip", "br, gzip;q=0.5", "deflate , GZIP"]) {
    const { headers, bytes } = await gzip(header);
    expect(headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    expect(Number(headers["content-length"])).toBeLessThan(200);
    expect(gunzipSync(bytes).toString()).toBe("export {};\n".repeat(1_000));
  }
  for (const header of ["", "br", "gzip;q=0", "gzip; q=0.00, br", "xgzip"]) {
    const { headers, text } = await gzip(header);
    expect(headers).not.toHaveProperty("content-encoding");
    expect(headers).toMatchObject({ vary: "Accept-Encoding", "content-length": "11000" });
    expect(text).toBe("export {};\n".repeat(1_000));
  }
  const small = await send(url, {
    path: "/assets/main-C1.css",
    headers: { "Accept-Encoding": "gzip" },
  });
  expect(small.headers).not.toHaveProperty("content-encoding");
});
