import { operatorAt } from "@coinslot/facilitator";
import { describe, expect, it } from "vitest";
import { cookieOf, signIn, startTestConsole } from "../testing/signed-in.ts";
import { ofPage, send } from "../testing/visit-console.ts";

const operator = operatorAt("sqlite:/nonexistent/ledger.db");
const minutes = 60_000;

async function open(options: Parameters<typeof startTestConsole>[1] = {}) {
  const console = await startTestConsole(operator, options);
  return { ...console, browser: await signIn(console.url, { link: console.link() }) };
}

describe("the cookie of a session", () => {
  it("is for HTTP and this site alone", async () => {
    const { url, link } = await startTestConsole(operator);
    const { headers } = await send(url, {
      ...{ method: "POST", path: "/api/session", headers: ofPage(url), body: { link: link() } },
    });
    const cookie = String(headers["set-cookie"]);
    expect(cookie).toMatch(/^coinslot_console=[\w-]+\.[\w-]+; Path=\/; Max-Age=43200; /);
    expect(cookie).toContain("HttpOnly; SameSite=Strict");
  });

  it("is bound to its host, and encrypted, at an https origin", async () => {
    const origin = "https://console.example";
    const { url, link } = await startTestConsole(operator, { origins: [origin] });
    const answer = await send(url, {
      ...{ method: "POST", path: "/api/session", body: { link: link() } },
      headers: { ...ofPage(origin), Host: "console.example" },
    });
    expect(cookieOf(answer)).toMatch(/^__Host-coinslot_console=/);
    expect(String(answer.headers["set-cookie"])).toMatch(/Path=\/; .*SameSite=Strict; Secure$/);
  });

  it("grants no role when it was stolen, without the token", async () => {
    const { url, browser } = await open();
    for (const token of ["none", "x".repeat(43), browser.cookie.slice(-43)]) {
      const headers = ofPage(url, token, browser.cookie);
      expect(await send(url, { path: "/api/session", headers })).toMatchObject({
        json: { role: "none", session: { isTokenValid: false } },
      });
    }
  });

  it("counts by its signature: a forged, a cut and a foreign one are none", async () => {
    const { url, browser } = await open();
    const other = await open();
    const [id, mac] = browser.cookie.split(".");
    for (const cookie of [
      `${id}.`,
      `${id}`,
      `${id}.${"A".repeat(43)}`,
      `coinslot_console=${"A".repeat(43)}.${mac}`,
      "coinslot_console=",
      "coinslot_console=__proto__.x",
      other.browser.cookie,
    ]) {
      const headers = ofPage(url, browser.token, cookie);
      const { json } = await send(url, { path: "/api/session", headers });
      expect(json).toMatchObject({ role: "none" });
      expect(json).not.toHaveProperty("session");
    }
  });

  it("is found beside cookies of its name that another program has set", async () => {
    const { url, browser } = await open();
    const cookie = `coinslot_console=evil; theme=dark; ${browser.cookie}`;
    const headers = ofPage(url, browser.token, cookie);
    expect((await send(url, { path: "/api/session", headers })).json).toMatchObject({
      role: "operator",
    });
  });
});

describe("a session", () => {
  it("ends after fifteen minutes of silence, whatever pages do by themselves", async () => {
    let now = 1_000_000;
    const { browser } = await open({ now: () => now });
    const roleAfter = async (elapsed: number) => {
      now += elapsed;
      const { json } = await browser.send({ path: "/api/session" });
      return json;
    };
    expect(await roleAfter(14 * minutes)).toMatchObject({ role: "operator" });
    expect(await roleAfter(minutes)).toMatchObject({ role: "none" });
  });

  it("is prolonged by a person's request, and ends after twelve hours", async () => {
    let now = 1_000_000;
    const { browser } = await open({ now: () => now });
    const post = () => browser.run("refunds.list", { limit: 0 });
    let hours = 0;
    for (; hours < 20 && (await post()).status === 400; hours += 0.2) now += 12 * minutes;
    expect(hours).toBeCloseTo(12);
  });

  it("is not prolonged by the requests that a page makes by itself", async () => {
    let now = 1_000_000;
    const { browser } = await open({ now: () => now });
    const post = () => browser.run("refunds.list", { limit: 0 }, { "X-Coinslot-Background": "1" });
    for (let count = 0; count < 3; count += 1) {
      expect((await post()).status).toBe(400);
      now += 5 * minutes;
    }
    expect((await post()).status).toBe(401);
  });

  it("does not outlive a clock that was set back", async () => {
    let now = 1_000_000;
    const { browser } = await open({ now: () => now });
    now -= 5 * minutes;
    expect((await browser.send({ path: "/api/session" })).json).toMatchObject({ role: "none" });
  });

  it("ends with its sign-out, and all of them with everyone's", async () => {
    let now = 0;
    const console = await startTestConsole(operator, { key: "k".repeat(32), now: () => now });
    const browsers: Awaited<ReturnType<typeof signIn>>[] = [];
    for (let count = 0; count < 3; count += 1) {
      browsers.push(await signIn(console.url, { key: "k".repeat(32) }));
      now += 1;
    }
    const roles = async () =>
      Promise.all(
        browsers.map(async ({ send: ask }) => {
          const { json } = await ask({ path: "/api/session" });
          return JSON.stringify(json).includes('"role":"operator"');
        }),
      );
    const [first, second] = browsers;
    const signedOut = await first?.send({ method: "DELETE", path: "/api/session" });
    expect(signedOut?.status).toBe(204);
    expect(String(signedOut?.headers["set-cookie"])).toContain("Max-Age=0");
    expect(await roles()).toEqual([false, true, true]);
    await second?.send({ method: "DELETE", path: "/api/sessions" });
    expect(await roles()).toEqual([false, false, false]);
  });

  it("ends the one that was silent for longest where there are too many", async () => {
    let now = 0;
    const key = "k".repeat(32);
    const { url } = await startTestConsole(operator, { key, now: () => now });
    const first = await signIn(url, { key });
    for (let count = 0; count < 64; count += 1) {
      now += 1;
      await signIn(url, { key });
    }
    expect((await first.send({ path: "/api/session" })).json).toMatchObject({ role: "none" });
  });

  it("a session of an operator outlives what readers do with theirs", async () => {
    let now = 0;
    const [key, readerKey] = ["k".repeat(32), "r".repeat(32)];
    const { url } = await startTestConsole(operator, { key, readerKey, now: () => now });
    const first = await signIn(url, { key });
    const other = await signIn(url, { key: readerKey });
    for (let count = 0; count < 64; count += 1) {
      now += 1;
      await signIn(url, { key: readerKey });
    }
    const reader = await signIn(url, { key: readerKey });
    const role = async ({ send: ask }: typeof first) => (await ask({ path: "/api/session" })).json;
    expect(await role(other)).toMatchObject({ role: "none" });
    expect(await role(first)).toMatchObject({ role: "operator" });
    expect((await reader.send({ method: "DELETE", path: "/api/sessions" })).status).toBe(204);
    expect(await role(reader)).toMatchObject({ role: "none" });
    expect(await role(first)).toMatchObject({ role: "operator" });
  });
});
