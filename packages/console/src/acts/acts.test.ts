import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  settled,
  useRefundingDevnet,
  withFloat,
} from "../../../facilitator/src/testing/refunding-devnet.ts";
import { engines } from "../../../facilitator/src/testing/settling-devnet.ts";
import { signIn, startTestConsole } from "../testing/signed-in.ts";

const key = "k".repeat(32);
const named = (name: string) => ({ "Idempotency-Key": name.padEnd(16, ".") });
const refundIds = async ({ refunds }: CoinslotFacilitator) =>
  (await refunds.list()).refunds.map(({ payment, n, amount }) => [payment, n, amount]);

describe.each(engines)("an act, on %s", (engine) => {
  const begin = useRefundingDevnet();

  async function open(options: Parameters<typeof startTestConsole>[1] = {}) {
    const devnet = await begin(engine);
    const facilitator = await devnet.start(withFloat);
    const console = await startTestConsole(facilitator, options);
    return { devnet, facilitator, ...console };
  }

  it("refunds a payment once, however often its key comes", async () => {
    const { devnet, facilitator, url, link } = await open();
    const browser = await signIn(url, { link: link() });
    const payment = await settled(facilitator, devnet);
    const refund = () => browser.run("refunds.create", { payment, amount: "400" }, named("first"));
    const answers = await Promise.all([refund(), refund()]);
    const ids = answers.map(({ json }) => json);
    expect(ids[0]).toMatchObject({ payment, n: 1, amount: "400" });
    expect(ids[1]).toEqual(ids[0]);
    expect((await refund()).headers["idempotency-replayed"]).toBe("true");
    expect(
      await browser.run("refunds.create", { payment, amount: "500" }, named("first")),
    ).toMatchObject({ status: 409, json: { code: "key_reused" } });
    expect(await refundIds(facilitator)).toEqual([[payment, 1, 400n]]);
  });

  it("is known by its key also to a console that started anew", async () => {
    const { devnet, facilitator, url, link } = await open();
    const payment = await settled(facilitator, devnet);
    const argument = { payment, amount: "400" };
    const first = await (await signIn(url, { link: link() })).run(
      ...(["refunds.create", argument, named("same")] as const),
    );
    const next = await startTestConsole(facilitator);
    const browser = await signIn(next.url, { link: next.link() });
    const second = await browser.run("refunds.create", argument, named("same"));
    expect(second.json).toMatchObject({ id: (first.json as { id: string }).id });
    expect(await refundIds(facilitator)).toHaveLength(1);
  });

  it("stands in the audit log with its session, and so do sign-ins", async () => {
    const { devnet, facilitator, url, link } = await open({ key });
    const browser = await signIn(url, { link: link() });
    const payment = await settled(facilitator, devnet);
    expect((await browser.run("refunds.create", { payment }, named("audited"))).status).toBe(200);
    await expect(signIn(url, { key: "w".repeat(32) })).rejects.toThrow();
    await browser.send({ method: "DELETE", path: "/api/session" });
    const other = await signIn(url, { key });
    const entries = async () => {
      const { json } = await other.run("audit.list");
      return z.object({ entries: z.array(z.record(z.string(), z.unknown())) }).parse(json).entries;
    };
    const account = expect.stringMatching(/^console [0-9a-f]{8} \(link\)$/);
    const [signedIn, refused] = [{ outcome: "done", account }, { outcome: "refused" }];
    await expect
      .poll(entries)
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ operation: "session.open", ...signedIn }),
          expect.objectContaining({ operation: "session.close", ...signedIn }),
          expect.objectContaining({ operation: "session.open", ...refused, code: "wrong_key" }),
          expect.objectContaining({ operation: "refunds.create", ...signedIn }),
        ]),
      );
    const entry = { operation: "x", outcome: "done" };
    expect((await other.run("audit.record", entry, named("forged"))).status).toBe(404);
  });

  it("is refused in the operation's own words", async () => {
    const { url, link } = await open();
    const browser = await signIn(url, { link: link() });
    expect(await browser.run("refunds.create", { payment: "none" }, named("a"))).toMatchObject({
      status: 409,
      json: { code: "unknown_payment" },
    });
    expect(await browser.run("refunds.create", { pay: 1 }, named("b"))).toMatchObject({
      status: 400,
      json: { code: "malformed" },
    });
    expect(await browser.run("refunds.create", { payment: "none" })).toMatchObject({
      status: 400,
      json: { message: expect.stringContaining("Idempotency-Key") },
    });
    expect(await browser.run("refunds.destroy")).toMatchObject({
      status: 404,
      json: { code: "unknown_operation" },
    });
  });

  it("is beyond readers, programs of this machine, and thieves of a cookie", async () => {
    const readerKey = "r".repeat(32);
    const { devnet, facilitator, url } = await open({ key, readerKey, readOnLoopback: true });
    const payment = await settled(facilitator, devnet);
    const operator = await signIn(url, { key });
    const reader = await signIn(url, { key: readerKey });
    const list = { method: "POST", path: "/api/refunds.list", body: {} };
    expect((await reader.send(list)).status).toBe(200);
    for (const [headers, code] of [
      [{}, "role_needed"],
      [{ Cookie: "" }, "sign_in_needed"],
      [{ Cookie: operator.cookie, "X-Coinslot-Token": reader.token }, "role_needed"],
      [{ Cookie: operator.cookie, "X-Coinslot-Token": "none" }, "role_needed"],
      [
        {
          Cookie: operator.cookie,
          "X-Coinslot-Token": operator.token,
          Origin: "http://localhost:1",
        },
        "cross_origin",
      ],
      [
        {
          Cookie: operator.cookie,
          "X-Coinslot-Token": operator.token,
          "Sec-Fetch-Site": "same-site",
        },
        "cross_origin",
      ],
    ] as const) {
      expect(
        await reader.run("refunds.create", { payment }, { ...named("x"), ...headers }),
      ).toMatchObject({ json: { code } });
    }
    expect(await refundIds(facilitator)).toEqual([]);
  });

  it("asks for the key again above the limit, also where small refunds add up", async () => {
    // A payment is of 0.001 tokens.
    const { devnet, facilitator, url } = await open({ key, confirmAbove: "0.0015" });
    const browser = await signIn(url, { key });
    const payments: string[] = [];
    for (let count = 0; count < 3; count += 1) payments.push(await settled(facilitator, devnet));
    const refund = (index: number, headers = {}) =>
      browser.run(...(["refunds.create", { payment: payments[index] }] as const), {
        ...named(`refund-${index}`),
        ...headers,
      });
    expect((await refund(0)).status).toBe(200);
    expect(await refund(1)).toMatchObject({
      status: 403,
      json: { code: "confirmation_needed", confirmation: "key" },
    });
    expect(await refund(1, { "X-Coinslot-Confirmation": "wrong" })).toMatchObject({
      status: 403,
      json: { code: "wrong_confirmation", attemptsLeft: 4 },
    });
    expect(await refundIds(facilitator)).toHaveLength(1);
    expect((await refund(1, { "X-Coinslot-Confirmation": key })).status).toBe(200);
    expect((await refund(2)).status).toBe(200);
  });

  it("asks for a printed code where there is no key, and ends the session of a guesser", async () => {
    const { devnet, facilitator, url, link, printed } = await open({ confirmAbove: "0" });
    const browser = await signIn(url, { link: link() });
    const [payment, other] = [
      await settled(facilitator, devnet),
      await settled(facilitator, devnet),
    ];
    const refund = (id: string, headers = {}) =>
      browser.run("refunds.create", { payment: id }, { ...named(id.slice(0, 20)), ...headers });
    const { payer } = (await facilitator.payments.get(payment))?.authorization ?? {};
    const words = `a refund of 0.001 USDT0 on Plasma to ${payer} for the payment ${payment}`;
    expect(await refund(payment)).toMatchObject({
      json: { confirmation: "code", message: `A confirmation is needed: ${words}.` },
    });
    expect(printed.at(-1)).toMatch(
      new RegExp(`^Code to confirm ${words} in the console, within 5 minutes: \\d{8}$`),
    );
    const code = printed.at(-1)?.slice(-8) ?? "";
    // The code is for the act that it names.
    expect((await refund(other, { "X-Coinslot-Confirmation": code })).status).toBe(403);
    expect((await refund(payment, { "X-Coinslot-Confirmation": code })).status).toBe(200);
    const guesses = [];
    for (let count = 0; count < 6; count += 1) {
      guesses.push((await refund(other, { "X-Coinslot-Confirmation": "00000000x" })).json);
    }
    expect(guesses.at(-2)).toMatchObject({ code: "wrong_confirmation", attemptsLeft: 0 });
    expect(guesses.at(-1)).toMatchObject({ code: "sign_in_needed" });
    expect(await refundIds(facilitator)).toHaveLength(1);
  });

  it("has a code of its own in each window of a session", async () => {
    const { devnet, facilitator, url, link, printed } = await open({ confirmAbove: "0" });
    const browser = await signIn(url, { link: link() });
    const payments = [await settled(facilitator, devnet), await settled(facilitator, devnet)];
    const refund = (payment: string, headers = {}) =>
      browser.run("refunds.create", { payment }, { ...named(payment.slice(0, 20)), ...headers });
    for (const payment of payments) expect((await refund(payment)).status).toBe(403);
    const codes = printed.slice(-2).map((line) => line.slice(-8));
    // The code of the other window confirms nothing here.
    const crossed = { "X-Coinslot-Confirmation": codes[1] ?? "" };
    expect(await refund(payments[0] ?? "", crossed)).toMatchObject({
      json: { code: "wrong_confirmation", confirmation: "code" },
    });
    for (const [index, payment] of payments.entries()) {
      const confirmed = { "X-Coinslot-Confirmation": codes[index] ?? "" };
      expect((await refund(payment, confirmed)).status).toBe(200);
    }
    expect(await refundIds(facilitator)).toHaveLength(2);
  });

  it("leaves a guesser no further guess by sending all of them at once", async () => {
    const { devnet, facilitator, url, link, printed } = await open({ confirmAbove: "0" });
    const browser = await signIn(url, { link: link() });
    const payment = await settled(facilitator, devnet);
    const refund = (name: string, guess: Record<string, string>) =>
      browser.run("refunds.create", { payment, idempotencyKey: "x" }, { ...named(name), ...guess });
    expect((await refund("asked", {})).status).toBe(403);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        refund(`guess-${index}`, { "X-Coinslot-Confirmation": "none" }),
      ),
    );
    const codes = answers.map(({ json }) => z.object({ code: z.string() }).parse(json).code);
    expect(codes.filter((code) => code === "wrong_confirmation")).toHaveLength(5);
    expect(codes.filter((code) => code === "sign_in_needed")).toHaveLength(15);
    expect(printed.at(-1)).toMatch(/\d{8}$/);
  });
});
