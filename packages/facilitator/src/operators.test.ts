import { createTestDatabase } from "@coinslot/devnet";
import { ConfigurationError, type SettleOptions, toLowerHex } from "@coinslot/protocol";
import { sql } from "kysely";
import { afterEach, describe, expect, it } from "vitest";
import { createFacilitator } from "./create-facilitator.ts";
import { openLedger } from "./ledger/open-ledger.ts";
import { silentLogger } from "./logger.ts";
import { type SettlingDevnet, startSettlingDevnet } from "./testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;
afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

/** Verifies, reserves and settles, as a gate does, with an answer to keep. */
async function sell(
  facilitator: ReturnType<typeof createFacilitator>,
  paid: Awaited<ReturnType<SettlingDevnet["pay"]>>,
  answer?: SettleOptions["answer"],
) {
  const { paymentPayload, paymentRequirements, authorization } = paid;
  const verified = await facilitator.verify(paymentPayload, paymentRequirements);
  const { network, asset } = paymentRequirements;
  const id = {
    network,
    asset: toLowerHex(asset),
    payer: toLowerHex(authorization.from),
    nonce: authorization.nonce,
  };
  const request = { id, fingerprint: "GET /a", keyHash: answer?.keyHash };
  const reserved = await facilitator.reserve({
    ...request,
    value: authorization.value,
    validBefore: authorization.validBefore,
    payTo: toLowerHex(authorization.to),
    balance: "balance" in verified ? verified.balance : undefined,
  });
  if (reserved.state !== "reserved") throw new Error(reserved.state);
  const { reservation } = reserved;
  const settled = await facilitator.settle(paymentPayload, paymentRequirements, {
    reservation,
    answer,
  });
  await facilitator.deliver(reservation);
  return { settled, request };
}

describe("an operator", () => {
  it("finds each outcome in the log, and every stage in the metrics", async () => {
    settling = await startSettlingDevnet("sqlite");
    const lines: object[] = [];
    const info = (fields: object, message: string) =>
      void (message === "payment outcome" && lines.push(fields));
    const facilitator = await settling.start({ logger: { ...silentLogger, info } });
    const { settled } = await sell(facilitator, await settling.pay());
    expect(lines).toMatchObject([{ state: "confirmed", transaction: settled.transaction }]);
    expect(JSON.stringify(lines)).not.toContain("signature");

    const figures = await facilitator.metrics.metrics();
    for (const line of [
      /^coinslot_verify_seconds_count 1$/m,
      /^coinslot_reserve_seconds_count 1$/m,
      /^coinslot_settle_seconds_count 1$/m,
      /^coinslot_batch_payments_sum\{network="eip155:9745"\} 1$/m,
      /^coinslot_transactions_total\{network="eip155:9745",event="stored"\} 1$/m,
      /^coinslot_payments_total\{network="eip155:9745",outcome="confirmed"\} 1$/m,
      /^coinslot_relayer_balance_wei\{network="eip155:9745",relayer="0x\w{40}"\} \d/m,
      /^coinslot_queue_payments\{network="eip155:9745",lane="shared"\} \d+$/m,
      /^coinslot_transactions_in_flight\{network="eip155:9745",relayer="0x\w{40}"\} \d+$/m,
    ]) {
      expect(figures).toMatch(line);
    }
    expect(await facilitator.stats()).toMatchObject([{ state: "confirmed", count: 1 }]);
  });

  it("configures the retention and the size of kept answers", async () => {
    settling = await startSettlingDevnet("sqlite");
    let lead = 0;
    const facilitator = await settling.start({
      keepAnswersSeconds: 60,
      maxAnswerBytes: 4,
      now: () => Date.now() + lead,
    });
    const small = { keyHash: "small", sealed: Uint8Array.of(1, 2, 3, 4) };
    const large = { keyHash: "large", sealed: Uint8Array.of(1, 2, 3, 4, 5) };
    const kept = await sell(facilitator, await settling.pay(), small);
    const left = await sell(facilitator, await settling.pay(), large);
    const found = await facilitator.lookUp(kept.request);
    expect(found).toMatchObject({ state: "delivered", answer: { keyHash: "small" } });
    expect(await facilitator.lookUp(left.request)).toMatchObject({ answer: undefined });
    lead = 61_000;
    expect(await facilitator.lookUp(kept.request)).toMatchObject({
      state: "delivered",
      answer: undefined,
    });
  });
});

describe("the start error of a facilitator", () => {
  /** The error of a start on this ledger, with an unreachable chain. */
  async function problemsOf(ledger: string): Promise<readonly string[]> {
    const facilitator = createFacilitator({
      networks: [
        {
          network: "eip155:9745",
          rpcUrls: ["http://127.0.0.1:1/secret-key"],
          relayer: { privateKey: `0x${"77".repeat(32)}` },
        },
      ],
      ledger,
      startTimeoutSeconds: 0,
    });
    const failure = await facilitator.ready().catch((error: unknown) => error);
    await facilitator.close();
    if (!(failure instanceof ConfigurationError)) throw failure;
    return failure.problems;
  }

  const chain = expect.stringMatching(/^eip155:9745: endpoint 1 of 1: .*check its URL/);

  it("names ledger and chain at once, without a secret of either", async () => {
    const problems = await problemsOf("postgres://somebody:password-1@127.0.0.1:1/coinslot");
    expect(problems).toEqual([expect.stringMatching(/^The ledger cannot be used: /), chain]);
    expect(problems.join()).not.toMatch(/password-1|secret-key/);
  });

  it("reports a ledger of a newer version", async () => {
    const database = await createTestDatabase();
    const opened = await openLedger({ url: database.url, processId: "newer" });
    await sql`insert into coinslot_migrations (name, version, title, applied_at_ms)
      values ('facilitator', 99, 'what is to come', 0)`.execute(opened.database.kysely);
    await opened.close();
    const problems = await problemsOf(database.url);
    expect(problems).toEqual([expect.stringMatching(/newer/), chain]);
    await database.drop();
  });

  it("reports another process on its file", async () => {
    settling = await startSettlingDevnet("sqlite");
    await settling.start();
    const problems = await problemsOf(settling.ledger.url);
    expect(problems).toEqual([expect.stringMatching(/Another process works on/), chain]);
  });
});
