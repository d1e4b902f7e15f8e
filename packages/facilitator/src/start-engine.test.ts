import { startDevnet } from "@coinslot/devnet";
import { ConfigurationError } from "@coinslot/protocol";
import type { Kysely } from "kysely";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createFacilitator } from "./create-facilitator.ts";
import { openLedger } from "./ledger/open-ledger.ts";
import type { LedgerSchema } from "./ledger/schema.ts";
import { type Logger, silentLogger } from "./logger.ts";
import { type Intercept, startNodeProxy } from "./testing/node-proxy.ts";
import { createTestLedger, engines, startSettlingDevnet } from "./testing/settling-devnet.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/**
 * A facilitator on a ledger of its own, with a node that answers by `intercept`. With `hasSecond`
 * an honest node is its second endpoint.
 */
async function begin(
  intercept: Intercept,
  options: { engine?: (typeof engines)[number]; hasSecond?: boolean; logger?: Logger } = {},
) {
  const devnet = await startDevnet();
  ends.push(() => devnet.stop());
  const proxy = await startNodeProxy(devnet.rpcUrl, intercept);
  ends.push(() => proxy.close());
  const ledger = await createTestLedger(options.engine ?? "sqlite");
  ends.push(() => ledger.drop());
  const rpcUrls = options.hasSecond === true ? [proxy.url, devnet.rpcUrl] : [proxy.url];
  const create = (startTimeoutSeconds: number) => {
    const { network, accounts } = devnet;
    const { privateKey } = accounts.relayer;
    const facilitator = createFacilitator({
      networks: [{ network, rpcUrls, relayer: { privateKey } }],
      ledger: ledger.url,
      startTimeoutSeconds,
      ...(options.logger !== undefined && { logger: options.logger }),
    });
    ends.push(() => facilitator.close());
    return facilitator;
  };
  const start = (startTimeoutSeconds: number) => create(startTimeoutSeconds).ready();
  /** Runs an operation on the ledger's database, which must not be open elsewhere. */
  async function open<Result>(work: (ledger: Kysely<LedgerSchema>) => Promise<Result>) {
    const opened = await openLedger({ url: ledger.url, processId: "test" });
    try {
      return await work(opened.database.kysely);
    } finally {
      await opened.close();
    }
  }
  return { devnet, create, start, open };
}

const malformed = { result: "no block" };
const fault = { error: { code: -32603, message: "internal error" } };

describe("a start with a temporarily failing node", () => {
  it.each([
    ["breaks the connection", undefined],
    ["returns malformed data", malformed],
    ["returns an error", fault],
  ])("succeeds, although the node %s at its first request", async (_, bad) => {
    const asked = new Set<string>();
    const { start } = await begin(async ({ method }, ask) => {
      if (asked.has(method)) return ask();
      asked.add(method);
      return bad;
    });
    await expect(start(10)).resolves.toBeUndefined();
  });

  it("succeeds beside an endpoint of another chain, and logs it as an error", async () => {
    const errors: [object, string][] = [];
    const logger = {
      ...silentLogger,
      error: (fields: object, message: string) => void errors.push([fields, message]),
    };
    const lie: Intercept = async ({ method }, ask) =>
      method === "eth_chainId" ? { result: "0x1" } : ask();
    const { devnet, start } = await begin(lie, { hasSecond: true, logger });
    await expect(start(10)).resolves.toBeUndefined();
    const { network, chainId: expected } = devnet;
    expect(errors).toEqual([
      [
        { network, endpoint: 1, found: 1, expected },
        "An endpoint serves another chain, and is not used",
      ],
    ]);
  });

  it("fails at its deadline, with the obstacle", async () => {
    const { start } = await begin(async ({ method }, ask) =>
      method === "eth_getCode" ? fault : ask(),
    );
    const failure = await start(0.3).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigurationError);
    expect(failure).toMatchObject({ problems: [expect.stringContaining("cannot be read")] });
  });
});

it("ready() rejects for a facilitator that is closed before it is ready", async () => {
  let asked = 0;
  const { create } = await begin(async ({ method }, ask) => {
    if (method !== "eth_getTransactionCount") return ask();
    asked += 1;
    return fault;
  });
  const facilitator = create(5);
  const ready = facilitator.ready();
  ready.catch(() => undefined);
  await vi.waitFor(() => expect(asked).toBeGreaterThan(0), 20_000);
  await facilitator.close();
  await expect(ready).rejects.toThrow("closed");
});

describe.each(engines)("a failed start on %s", (engine) => {
  it("leaves no ledger open when its chain cannot be read", async () => {
    let isSick = true;
    const { start, open } = await begin(
      async ({ method }, ask) => (method === "eth_getBlockByNumber" && isSick ? fault : ask()),
      { engine },
    );
    await expect(start(0)).rejects.toThrow("cannot be read");
    expect(await open((ledger) => ledger.selectFrom("processes").select("id").execute())).toEqual(
      [],
    );
    isSick = false;
    await expect(start(5)).resolves.toBeUndefined();
  });

  it("leaves no ledger open when it fails after opening one", async () => {
    const { start, open } = await begin(async (_, ask) => ask(), { engine });
    const rename = (from: string, to: string) =>
      open((ledger) => ledger.schema.alterTable("processes").renameColumn(from, to).execute());
    await rename("heartbeat_at", "lost");
    await expect(start(5)).rejects.toThrow();
    await rename("lost", "heartbeat_at");
    await expect(start(5)).resolves.toBeUndefined();
  });
});

it("a facilitator with a retention forgets older payments", async () => {
  const settling = await startSettlingDevnet("sqlite");
  ends.push(() => settling.stop());
  let lead = 0;
  const facilitator = await settling.start({
    keepPaymentsDays: 1,
    heartbeatLeaseSeconds: 0.5,
    now: () => Date.now() + lead,
    network: { finalAfter: 0 },
  });
  const { paymentPayload, paymentRequirements } = await settling.pay();
  await facilitator.settle(paymentPayload, paymentRequirements);
  await settling.devnet.mine(2);
  await vi.waitFor(async () => {
    const { payments } = await facilitator.payments.list();
    expect(payments).toMatchObject([{ state: "confirmed", finalAt: expect.any(Number) }]);
  }, 20_000);
  lead = 25 * 3_600_000;
  await vi.waitFor(async () => {
    expect((await facilitator.payments.list()).payments).toEqual([]);
  }, 20_000);
  // A second presentation is refused by the chain.
  lead = 0;
  expect(await facilitator.verify(paymentPayload, paymentRequirements)).toMatchObject({
    isValid: false,
    invalidReason: "invalid_exact_evm_nonce_already_used",
  });
});
