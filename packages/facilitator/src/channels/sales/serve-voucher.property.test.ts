import { systemClock } from "@coinslot/chain";
import { effort } from "@coinslot/devnet/effort";
import {
  type ChannelAdmission,
  type ChannelCharge,
  type ChannelConfig,
  type ChannelRun,
  channelIdOf,
  type Hex,
  maxHandlerRuns,
} from "@coinslot/protocol";
import fc from "fast-check";
import { sql } from "kysely";
import { Registry } from "prom-client";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import { openChannel, readChannel } from "../../ledger/channels/open-channel.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { silentLogger } from "../../logger.ts";
import { createChannelMetrics } from "../../settle/channel-metrics.ts";
import { createStopBoard } from "../../stops/stop-board.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { ObservedChannel } from "../watch/observed-channel.ts";
import { createChannelSales, type RunningChannelSales } from "./channel-sales.ts";

const account = (value: number): Hex => numberToHex(value, { size: 20 });
const network = "eip155:9745";
const contract = account(0x4020);
const price = 10n;
const config: ChannelConfig = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: numberToHex(0, { size: 32 }),
};

/**
 * A step of a history. `at`: the process; `amount`: a part of the price, or of the chain's sums.
 */
const anyStep = fc.record({
  kind: fc.constantFrom(
    ...(["buy", "buy", "buy", "old", "high", "lose", "repeat", "drop", "freeze", "wake"] as const),
    ...(["lower", "take back", "die", "flush", "withdraw", "claim"] as const),
  ),
  at: fc.nat({ max: 1 }),
  amount: fc.bigInt({ min: 0n, max: price }),
  isSafe: fc.boolean(),
});
type Step = typeof anyStep extends fc.Arbitrary<infer Value> ? Value : never;

describe.each(engines)("any history of a channel at two processes, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let names = 0;

  it("charges each run once, covers each charge by a voucher and secure money, and repeats only what is lost", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 25 }), (steps) =>
        walk(steps, numberToHex(++names, { size: 32 })),
      ),
      { numRuns: (engine === "sqlite" ? 30 : 10) * effort },
    );
  });

  async function walk(steps: readonly Step[], salt: Hex): Promise<void> {
    const channel = { ...config, salt };
    const channelId = channelIdOf(channel, { network, contract });
    const key: ChannelKey = { network, contract, channelId };
    const chain = { balance: 300n, totalClaimed: 0n, withdrawal: undefined, refundNonce: 0n };
    let secure = chain.balance;
    let charged = 0n;
    /** The last charge, as its buyer knows it. */
    let last: { ceiling: bigint; isDelivered: boolean; runs: number } | undefined;
    const frozen: { run: ChannelRun; base: bigint; sales: RunningChannelSales | undefined }[] = [];
    const founder = await start();
    const processes = [founder, await start()];
    await openChannel(founder.ledger, { ...key, config: channel, totalClaimed: 0n });
    await setSecure(secure);

    async function start() {
      names += 1;
      const ledger = await shared.join(`process-${names}`);
      return { ledger, sales: sell(ledger) };
    }

    function sell(ledger: LedgerContext): RunningChannelSales {
      return createChannelSales({
        ledger,
        networks: [
          {
            network,
            contract,
            receiverAuthorizer: config.receiverAuthorizer,
            observer: {
              async observe(): Promise<ObservedChannel> {
                const row = await readChannel(ledger, key);
                if (row === undefined) throw new Error("No row");
                const facts = { isSelling: true, maxUnclaimed: 1_000_000n };
                return { kind: "observed", channel: row, state: { ...chain }, ...facts };
              },
            },
          },
        ],
        recoverSigner: () => undefined,
        stops: createStopBoard(),
        metrics: createChannelMetrics(new Registry()),
        clock: systemClock,
        logger: silentLogger,
        maxWaitMs: 1,
      });
    }

    async function setSecure(amount: bigint): Promise<void> {
      const stored = founder.ledger.dialect.amount.encode(amount);
      await shared.read(
        sql`update channels set secure = ${stored} where channel_id = ${channelId}`,
      );
    }

    const base = () => (charged > chain.totalClaimed ? charged : chain.totalClaimed);

    function admit(ceiling: bigint, { at, isSafe }: Step): Promise<ChannelAdmission> {
      const { sales } = processes[at] ?? {};
      if (sales === undefined) throw new Error("No process");
      const voucher = { channelId, maxClaimableAmount: ceiling, signature: "0x12" as const };
      return sales.admit({
        network,
        route: "GET /",
        presented: { channelConfig: channel, voucher },
        price,
        fingerprint: "GET /",
        isSafe,
        isGone: () => false,
      });
    }

    /** Charges an admitted run; what may be charged is in the model. */
    async function charge(run: ChannelRun, at: bigint, amount: bigint) {
      const outcome = await run.charge({ amount });
      if (outcome.state !== "charged") return undefined;
      // Nothing was charged since its admission, and its money is secure.
      expect(charged).toBeLessThanOrEqual(at);
      expect(at + price).toBeLessThanOrEqual(secure);
      charged = at + amount;
      last = { ceiling: at + price, isDelivered: false, runs: 1 };
      return outcome;
    }

    /** Ends a run that was admitted. `undefined`: the voucher bought nothing. */
    async function buy(step: Step): Promise<ChannelCharge | undefined> {
      const at = base();
      const admission = await admit(at + price, step);
      if (admission.state === "repeated") {
        await endRepeat(admission, at + price);
        return undefined;
      }
      if (admission.state !== "admitted") return undefined;
      return charge(admission.run, at, step.amount);
    }

    async function endRepeat(
      { repeat }: Extract<ChannelAdmission, { state: "repeated" }>,
      ceiling: bigint,
    ): Promise<void> {
      expect(last).toMatchObject({ ceiling, isDelivered: false });
      if (last === undefined) return;
      const hasBegun = await repeat.beginRun();
      expect(hasBegun).toBe(last.runs < maxHandlerRuns);
      last.runs += 1;
      last.isDelivered = true;
      repeat.deliver();
    }

    try {
      for (const step of steps) await take(step);
    } finally {
      for (const { sales } of processes) await sales.close();
    }

    async function take(step: Step): Promise<void> {
      const { kind, at, amount } = step;
      switch (kind) {
        case "buy":
        case "lose":
        case "lower":
        case "take back": {
          const outcome = await buy(step);
          if (outcome === undefined || last === undefined) break;
          if (kind === "lose") await outcome.giveUp();
          else if (kind === "take back") {
            const before = charged - step.amount;
            if (await outcome.lower(0n)) {
              charged = before;
              last = undefined;
            }
          } else {
            if (kind === "lower" && step.amount > 1n && (await outcome.lower(1n))) {
              charged = charged - step.amount + 1n;
            }
            outcome.deliver();
            last.isDelivered = true;
          }
          break;
        }
        case "old":
        case "high": {
          const ceiling = kind === "old" ? base() + price - 1n - amount : base() + price + 1n;
          if (ceiling < 0n) break;
          const admission = await admit(ceiling, step);
          if (admission.state === "repeated") await endRepeat(admission, ceiling);
          // One that the chain has paid gets no proof that might buy: its buyer reads the chain.
          else if (admission.state === "refused") {
            expect(admission.reason).toContain("cumulative_below_claimed");
            expect(ceiling).toBeLessThanOrEqual(chain.totalClaimed);
          } else expect(["corrected", "busy"]).toContain(admission.state);
          break;
        }
        case "repeat": {
          if (last === undefined) break;
          const { ceiling, isDelivered } = last;
          const admission = await admit(ceiling, step);
          if (isDelivered) expect(admission.state).not.toBe("repeated");
          if (admission.state === "repeated") await endRepeat(admission, ceiling);
          if (admission.state === "admitted") await admission.run.drop({ isFree: false });
          break;
        }
        case "drop":
        case "freeze": {
          const from = base();
          const admission = await admit(from + price, step);
          if (admission.state === "repeated") await endRepeat(admission, from + price);
          if (admission.state !== "admitted") break;
          if (kind === "drop") await admission.run.drop({ isFree: false });
          // Another request goes on at another process, while the handler of this one works.
          else frozen.push({ run: admission.run, base: from, sales: processes[at]?.sales });
          break;
        }
        case "wake": {
          const woken = frozen.shift();
          if (woken === undefined) break;
          const outcome = await charge(woken.run, woken.base, amount);
          outcome?.deliver();
          // Closed sales write no mark: the answer may be served again.
          const isMarked = processes.some(({ sales }) => sales === woken.sales);
          if (outcome && last) last.isDelivered = isMarked;
          break;
        }
        case "die": {
          const died = processes[at];
          if (died === undefined) break;
          // Its marks are lost with it: what it delivered since the last ones may be served again.
          await died.sales.close();
          await shared.silence(died.ledger.processId);
          processes[at] = await start();
          break;
        }
        case "flush": {
          const flushed = processes[at];
          if (flushed === undefined) break;
          await flushed.sales.close();
          flushed.sales = sell(flushed.ledger);
          break;
        }
        case "withdraw":
          secure = base() + amount;
          await setSecure(secure);
          break;
        case "claim":
          chain.totalClaimed =
            chain.totalClaimed + amount > charged ? charged : chain.totalClaimed + amount;
      }
      const row = await readChannel(founder.ledger, key);
      expect(row?.charged).toBe(charged);
      expect(row?.voucher?.ceiling ?? charged).toBeGreaterThanOrEqual(charged);
    }
  }
});
