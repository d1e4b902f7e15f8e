import { operatorAt } from "@coinslot/facilitator";
import { describe, expect, it } from "vitest";
import { signIn, startTestConsole } from "../testing/signed-in.ts";
import { ofPage, send } from "../testing/visit-console.ts";

const operator = operatorAt("sqlite:/nonexistent/ledger.db");
const key = "k".repeat(32);

async function roleWith(url: string, headers: Record<string, string>) {
  const { status, json } = await send(url, { path: "/api/session", headers });
  return status === 200 && typeof json === "object" && json !== null && "role" in json
    ? json.role
    : status;
}

describe("a request of this machine", () => {
  it("reads without a sign-in only where that is allowed", async () => {
    const [closed, open] = [
      await startTestConsole(operator),
      await startTestConsole(operator, { readOnLoopback: true }),
    ];
    expect(await roleWith(closed.url, {})).toBe("none");
    expect(await roleWith(open.url, {})).toBe("reader");
  });

  it.each(["localhost", "127.0.0.1", "[::1]", "LOCALHOST:81"])(
    "is known by the host %s",
    async (host) => {
      const { url } = await startTestConsole(operator, { readOnLoopback: true });
      expect(await roleWith(url, { Host: host })).toBe("reader");
    },
  );

  it.each([
    "shop.example",
    "localhost.shop.example",
    "127.0.0.1.nip.io",
    "localhost@shop.example",
    "localhost:80:80",
    "localhost.",
    "127.1",
    "0.0.0.0",
    "[::ffff:127.0.0.1]",
  ])("is refused under the host %j", async (host) => {
    const { url } = await startTestConsole(operator, { readOnLoopback: true });
    expect(await send(url, { path: "/api/session", headers: { Host: host } })).toMatchObject({
      status: 421,
      json: { code: "unknown_host" },
    });
  });

  it.each([
    ["Forwarded", "for=1.2.3.4"],
    ["X-Forwarded-For", "127.0.0.1"],
    ["X-Forwarded-Host", "localhost"],
    ["x-FORWARDED-anything", ""],
    ["X-Real-IP", "1.2.3.4"],
    ["Via", "1.1 proxy"],
    ["CF-Connecting-IP", "1.2.3.4"],
  ])("a request of this machine that a proxy has passed on (%s) is none", async (name, value) => {
    const { url } = await startTestConsole(operator, { readOnLoopback: true });
    expect(await roleWith(url, { [name]: value })).toBe(421);
    const configured = await startTestConsole(operator, {
      readOnLoopback: true,
      origins: ["https://console.example"],
    });
    expect(await roleWith(configured.url, { Host: "console.example", [name]: value })).toBe("none");
  });
});

describe("a page of another origin", () => {
  it.each([
    ["another site", { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" }],
    [
      "another port of this machine",
      { Origin: "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site" },
    ],
    ["a file, or a sandbox", { Origin: "null" }],
    ["an old browser that omits the origin", { Origin: "" }],
  ])("cannot sign in, or out: %s", async (_name, headers) => {
    const { url } = await startTestConsole(operator, { key });
    const browser = await signIn(url, { key });
    for (const [method, path] of [
      ["POST", "/api/session"],
      ["POST", "/api/session/link"],
      ["DELETE", "/api/session"],
      ["DELETE", "/api/sessions"],
    ] as const) {
      expect(
        await browser.send({ method, path, headers, ...(method === "POST" && { body: { key } }) }),
      ).toMatchObject({ status: 403, json: { code: "cross_origin" } });
    }
    expect((await browser.send({ path: "/api/session" })).json).toMatchObject({ role: "operator" });
  });

  it("cannot post a form: without the header, and in a form's encoding", async () => {
    const { url } = await startTestConsole(operator, { key });
    const { "X-Coinslot-Token": _, ...headers } = ofPage(url);
    const post = (others: Record<string, string>) =>
      send(url, { method: "POST", path: "/api/session", headers: others, body: { key } });
    expect(await post(headers)).toMatchObject({ status: 403, json: { code: "token_needed" } });
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"]) {
      expect(await post({ ...ofPage(url), "Content-Type": type })).toMatchObject({ status: 400 });
    }
  });

  it("gets no permission from a preflight", async () => {
    const { url } = await startTestConsole(operator, { key });
    const { status, headers } = await send(url, {
      ...{ method: "OPTIONS", path: "/api/session" },
      headers: { Origin: "https://evil.example", "Access-Control-Request-Method": "POST" },
    });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});
