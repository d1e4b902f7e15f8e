import { type Devnet, startDevnet } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import { createFacilitatorClient } from "@coinslot/express";
import { type Address, FacilitatorError } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createDatabaseUrl, engines } from "../testing/database-url.ts";
import { createCallerKey } from "./caller-keys.ts";
import { signRequest, startHosted } from "./testing/hosted.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000_000n });
});

afterEach(async () => {
  await devnet.setIntervalMining(0);
  await devnet.setAutomine(true);
});

afterAll(() => devnet?.stop());

describe.each(byDay(["postgres"], engines))("a hosted facilitator on %s", (engine) => {
  it("counts each caller and each endpoint separately", async () => {
    const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const ledger = await createDatabaseUrl(engine);
    const env = {
      COINSLOT_LEDGER: ledger,
      FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}`,
      FACILITATOR_REQUESTS_PER_MINUTE: "3",
    };
    const hosted = await startHosted(devnet, env);
    // Each of two processes on one PostgreSQL knows the other's counts.
    const other = engine === "postgres" ? await startHosted(devnet, env) : hosted;
    const ask = async (which: typeof hosted, path: string, key: string) =>
      (await which.post(path, {}, { Authorization: `Bearer ${key}` })).status;

    const statuses = [];
    for (const which of [hosted, other, hosted, other, hosted]) {
      statuses.push(await ask(which, "/verify", shop.key));
    }
    expect(statuses).toEqual([400, 400, 400, 429, 429]);
    expect(await ask(other, "/verify", kiosk.key)).toBe(400);
    expect(await ask(other, "/settle", shop.key)).toBe(400);
    const refused = await hosted.post("/VERIFY/", {}, { "X-API-Key": shop.key });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(refused.headers.ratelimit).toContain("r=0");
    expect(refused.body).toMatchObject({ error: "too_many_requests" });
  });
});

describe("a hosted facilitator", () => {
  it("requires a key where it has some, in either header, and never returns it", async () => {
    const { key, entry } = createCallerKey("shop");
    const hosted = await startHosted(devnet, { FACILITATOR_KEYS: entry });
    const secret = "a-wrong-key-that-is-secret-too";
    for (const headers of [
      {},
      { Authorization: secret },
      { Authorization: `Bearer ${secret}` },
      { "X-API-Key": secret },
      { Authorization: `Bearer ${entry}` },
      { Authorization: `Bearer ${secret}`, "X-API-Key": key },
    ]) {
      for (const path of ["/verify", "/settle", "/SETTLE", "/settle/", "/other"]) {
        const refused = await hosted.post(path, {}, headers);
        expect(refused.status).toBe(401);
        expect(refused.headers["www-authenticate"]).toContain("Bearer");
        expect(refused.text).not.toContain(secret);
      }
    }
    expect((await hosted.post("/verify", {}, { Authorization: `bearer ${key}` })).status).toBe(400);
    expect((await hosted.post("/verify", {}, { "X-API-Key": key })).status).toBe(400);
    expect((await hosted.get("/supported")).status).toBe(200);
    expect(hosted.log()).not.toContain(secret);

    const { paymentPayload, paymentRequirements } = await signRequest(devnet);
    const keyless = createFacilitatorClient({ url: hosted.url });
    await expect(keyless.verify(paymentPayload, paymentRequirements)).rejects.toThrow(
      FacilitatorError,
    );
  });

  it("settles its own sellers' payments only, in its own tokens", async () => {
    const hosted = await startHosted(devnet, {
      FACILITATOR_PAY_TO: devnet.accounts.seller.address.toLowerCase(),
    });
    const [stranger] = devnet.accounts.others;
    const toOther = await signRequest(devnet, { payTo: stranger?.address ?? devnet.token });
    const verified = await hosted.post("/verify", toOther);
    expect(verified.body).toMatchObject({
      isValid: false,
      invalidReason: "recipient_not_allowed",
    });
    const settled = await hosted.post("/settle", toOther);
    expect(settled.status).toBe(200);
    expect(settled.body).toMatchObject({
      success: false,
      errorReason: "recipient_not_allowed",
      transaction: "",
    });
    const asset = await devnet.deployToken();
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000n, token: asset });
    const otherToken = await signRequest(devnet, { asset });
    expect((await hosted.post("/settle", otherToken)).body).toMatchObject({
      success: false,
    });
    const good = await signRequest(devnet);
    expect((await hosted.post("/verify", good)).body).toMatchObject({ isValid: true });
    expect((await hosted.post("/settle", good)).body).toMatchObject({ success: true });
    expect((await hosted.facilitator.payments.list()).payments).toHaveLength(1);
  });

  it("counts callers without a key by their address, from trusted proxies only", async () => {
    const hosted = await startHosted(devnet, { FACILITATOR_REQUESTS_PER_MINUTE: "1" });
    const proxied = await startHosted(devnet, {
      FACILITATOR_REQUESTS_PER_MINUTE: "1",
      FACILITATOR_TRUST_PROXY: "1",
    });
    const ask = async (which: typeof hosted, address: string) =>
      (await which.post("/verify", {}, { "X-Forwarded-For": address })).status;
    expect([await ask(hosted, "1.1.1.1"), await ask(hosted, "2.2.2.2")]).toEqual([400, 429]);
    expect([await ask(proxied, "1.1.1.1"), await ask(proxied, "2.2.2.2")]).toEqual([400, 400]);
    expect(await ask(proxied, "2.2.2.2")).toBe(429);
  });

  it("reads its ledger and metrics once a second at most, at any rate of probes", async () => {
    const hosted = await startHosted(devnet);
    let reads = 0;
    const list = hosted.facilitator.payments.list;
    const figures = hosted.facilitator.metrics.metrics;
    vi.spyOn(hosted.facilitator.payments, "list").mockImplementation((filter) => {
      reads += 1;
      return list(filter);
    });
    vi.spyOn(hosted.facilitator.metrics, "metrics").mockImplementation(() => {
      reads += 1;
      return figures.call(hosted.facilitator.metrics);
    });
    const startedAt = performance.now();
    const asked = Array.from({ length: 100 }, (_, n) =>
      hosted.get(n % 2 ? "/readyz" : "/metrics").then(({ status }) => status),
    );
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    const seconds = Math.ceil((performance.now() - startedAt) / 1000);
    expect(reads).toBeLessThanOrEqual(2 * seconds);
  });

  it("counts forged payments against their caller's key, and returns the retry time", async () => {
    const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const hosted = await startHosted(devnet, { FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}` });
    const forge = async () => {
      const request = await signRequest(devnet);
      const { authorization } = request.paymentPayload.payload;
      authorization.from = privateKeyToAccount(generatePrivateKey()).address;
      return request;
    };
    const ask = async (path: string, { key }: { key: string }, request: object) =>
      hosted.post(path, request, { Authorization: `Bearer ${key}` });
    const answers = [];
    for (let count = 0; count < 62; count += 1) {
      answers.push(await ask(count % 2 ? "/verify" : "/settle", shop, await forge()));
    }
    const limited = answers.filter(({ status }) => status === 503);
    // At least two, if a minute has ended meanwhile.
    expect(limited.length).toBeGreaterThanOrEqual(2);
    for (const { headers } of limited) {
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    }
    expect((await ask("/verify", kiosk, await forge())).status).toBe(200);
    const good = await ask("/verify", shop, await signRequest(devnet));
    expect(good.body).toMatchObject({ isValid: true });
  });

  it("lets a wallet that has settled through a key pay beside that key's forgeries", async () => {
    const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const hosted = await startHosted(devnet, {
      FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}`,
      FACILITATOR_REQUESTS_PER_MINUTE: "100000",
    });
    const ask = async (path: string, { key }: { key: string }, from: Address) =>
      hosted.post(path, await signRequest(devnet, { from }), { Authorization: `Bearer ${key}` });
    const deploy = async () => {
      const wallet = await devnet.deploySmartAccount({ owner: devnet.accounts.buyer.address });
      await devnet.mint({ to: wallet, amount: 10_000n });
      return wallet;
    };
    const [paying, verified, elsewhere] = [await deploy(), await deploy(), await deploy()];
    expect((await ask("/settle", shop, paying)).body).toMatchObject({ success: true });
    expect((await ask("/verify", shop, verified)).body).toMatchObject({ isValid: true });
    expect((await ask("/settle", kiosk, elsewhere)).body).toMatchObject({ success: true });
    // A minute may end in between, and the budget with it.
    await expect
      .poll(async () => {
        for (let count = 0; count < 31; count += 1) {
          await ask("/verify", shop, privateKeyToAccount(generatePrivateKey()).address);
        }
        const answers = [
          await ask("/verify", shop, verified),
          await ask("/verify", shop, elsewhere),
        ];
        return answers.map(({ status }) => status);
      }, patience)
      .toEqual([503, 503]);
    expect((await ask("/verify", shop, paying)).body).toMatchObject({ isValid: true });
    expect((await ask("/verify", kiosk, verified)).body).toMatchObject({ isValid: true });
  });
});
