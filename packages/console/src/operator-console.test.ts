import { once } from "node:events";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { operatorAt } from "@coinslot/facilitator";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { type OperatorConsoleOptions, operatorConsole } from "./operator-console.ts";
import { signIn } from "./testing/signed-in.ts";
import { ofPage, send } from "./testing/visit-console.ts";

const operator = operatorAt("sqlite:/nonexistent/ledger.db");
const key = "k".repeat(32);

// Express 4 brings no types of its own, and is used as Express 5 is.
const express4: typeof express = createRequire(import.meta.url)("express4");

describe.each([
  ["5", express],
  ["4", express4],
] as const)("mounted by Express %s", (_version, make) => {
  async function mount(options: OperatorConsoleOptions = {}, parse = false) {
    const app = make();
    if (parse) app.use(make.json());
    const mounted = operatorConsole(operator, { key, print: () => undefined, ...options });
    app.use("/_coinslot", mounted);
    app.get("/weather", (_request, response) => void response.send("sunny"));
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      mounted.close();
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  it("signs in below its mount, to read alone", async () => {
    const url = await mount();
    const browser = await signIn(url, { key }, "/_coinslot");
    expect((await browser.send({ path: "/_coinslot/api/session" })).json).toMatchObject({
      role: "reader",
      mayAct: false,
    });
    expect((await send(url, { path: "/weather" })).text).toBe("sunny");
  });

  it("acts where the owner of the origin allows it", async () => {
    const url = await mount({ allowActingOnThisOrigin: true });
    const browser = await signIn(url, { key }, "/_coinslot");
    expect((await browser.send({ path: "/_coinslot/api/session" })).json).toMatchObject({
      role: "operator",
    });
  });

  it("takes a body that the application's parser has read", async () => {
    const url = await mount({}, true);
    await expect(signIn(url, { key }, "/_coinslot")).resolves.toMatchObject({});
  });

  it("has its cookie on its path alone", async () => {
    const url = await mount();
    const { headers } = await send(url, {
      ...{ method: "POST", path: "/_coinslot/api/session", body: { key } },
      headers: ofPage(url),
    });
    expect(String(headers["set-cookie"])).toContain("; Path=/_coinslot; ");
  });

  it("answers with a page of its own to names that it does not know", async () => {
    const url = await mount();
    const answer = await send(url, {
      path: '/_coinslot/<script>alert(1)</script>?"><script>',
      headers: { Host: "evil.example" },
    });
    expect(answer.status).toBe(421);
    expect(answer.text).toContain("unknown_host");
    expect(answer.text).not.toContain("<script");
    expect(answer.headers["content-security-policy"]).toMatch(
      /^default-src 'self'; .*frame-ancestors 'none'/,
    );
  });
});
