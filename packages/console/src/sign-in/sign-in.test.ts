import { operatorAt } from "@coinslot/facilitator";
import { describe, expect, it } from "vitest";
import { signIn, startTestConsole } from "../testing/signed-in.ts";
import { ofPage, send } from "../testing/visit-console.ts";

const key = "k".repeat(40);
const readerKey = "r".repeat(40);
/** Sign-in asks for no ledger. */
const operator = operatorAt("sqlite:/nonexistent/ledger.db");

function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  return send(url, {
    ...{ method: "POST", path: "/api/session", body },
    headers: { ...ofPage(url), ...headers },
  });
}

describe("a one-time link", () => {
  it("is printed at the start, and opens a session that acts", async () => {
    const { url, printed, link } = await startTestConsole(operator);
    expect(printed.join("\n")).toContain(`${url}/#sign-in=`);
    const { send: ask } = await signIn(url, { link: link() });
    const { json } = await ask({ path: "/api/session" });
    expect(json).toMatchObject({ role: "operator", session: { signedInBy: "link" } });
  });

  it("signs one of two simultaneous requests in", async () => {
    const { url, link } = await startTestConsole(operator);
    const answers = await Promise.all([post(url, { link: link() }), post(url, { link: link() })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
    expect(await post(url, { link: link() })).toMatchObject({
      status: 401,
      json: { code: "link_used" },
    });
  });

  it("expires after ten minutes", async () => {
    let now = 0;
    const { url, link } = await startTestConsole(operator, { now: () => now });
    now += 10 * 60_000;
    expect((await post(url, { link: link() })).status).toBe(401);
  });

  it("does not open another console", async () => {
    const [one, other] = [await startTestConsole(operator), await startTestConsole(operator)];
    expect((await post(other.url, { link: one.link() })).status).toBe(401);
    expect((await post(one.url, { link: one.link() })).status).toBe(200);
  });

  it("is never printed for the address of another program, whatever Host asks for it", async () => {
    let now = 0;
    const { url, printed } = await startTestConsole(operator, { now: () => now });
    for (const origin of [
      "http://localhost:1",
      "http://localhost",
      url.replace("127.0.0.1", "[::1]"),
    ]) {
      now += 10_000;
      const headers = { ...ofPage(origin), Host: new URL(origin).host };
      const answer = await send(url, {
        ...{ method: "POST", path: "/api/session/link", headers, body: {} },
      });
      expect(answer.status).toBe(202);
      const [line = ""] = printed.slice(-1);
      expect(line.trim()).toContain(`${url}/#sign-in=`);
    }
    expect(printed).toHaveLength(8);
  });

  it("is printed again for a page that asks, at most every ten seconds", async () => {
    let now = 0;
    const { url, printed, link } = await startTestConsole(operator, { now: () => now });
    const first = link();
    const ask = () =>
      send(url, { method: "POST", path: "/api/session/link", headers: ofPage(url), body: {} });
    now += 10_000;
    for (let count = 0; count < 20; count += 1) expect((await ask()).status).toBe(202);
    expect(printed).toHaveLength(4);
    // Requests of strangers take no link from the operator.
    expect(link()).not.toBe(first);
    expect((await post(url, { link: first })).status).toBe(200);
    expect((await post(url, { link: link() })).status).toBe(200);
  });
});

describe("a key", () => {
  it("opens a session of its role", async () => {
    const { url } = await startTestConsole(operator, { key, readerKey });
    for (const [presented, role] of [
      [key, "operator"],
      [readerKey, "reader"],
    ] as const) {
      expect(await post(url, { key: presented })).toMatchObject({ status: 200, json: { role } });
    }
  });

  it("is accepted, however many wrong ones came before", async () => {
    const { url } = await startTestConsole(operator, { key });
    const wrong = await Promise.all(
      Array.from({ length: 15 }, () => post(url, { key: "w".repeat(40) })),
    );
    expect(wrong.map(({ status }) => status).sort()).toEqual([
      ...Array<number>(10).fill(401),
      ...Array<number>(5).fill(429),
    ]);
    expect((await post(url, { key })).status).toBe(200);
  });

  it("a key that is short, or equal to the readers', ends the start with all problems", async () => {
    await expect(
      startTestConsole(operator, {
        key: "short",
        origins: ["http://shop.example", "https://shop.example/path"],
        confirmAbove: "-1",
      }),
    ).rejects.toThrow(/32 to 256[\s\S]*http:\/\/shop[\s\S]*path[\s\S]*confirmAbove/);
    await expect(startTestConsole(operator, { key, readerKey: key })).rejects.toThrow("the same");
  });
});

it("is refused without a credential, with two, and with one that is no text", async () => {
  const { url } = await startTestConsole(operator, { key });
  for (const body of [{}, { key, link: "x" }, { key: 1 }, [], "x", { key: "x".repeat(2_000) }]) {
    const { status, json } = await post(url, body);
    expect([400, 413]).toContain(status);
    expect(json).toMatchObject({ code: expect.stringMatching(/malformed|too_large/) });
  }
});
