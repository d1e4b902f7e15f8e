import { systemClock } from "@coinslot/chain";
import {
  type ChannelAdmission,
  type ChannelConfig,
  type ChannelRequest,
  channelIdOf,
  type Hex,
  toLowerHex,
  voucherTypedData,
} from "@coinslot/protocol";
import { sql } from "kysely";
import { Registry } from "prom-client";
import { numberToHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach } from "vitest";
import {
  type ChannelSalesOptions,
  createChannelSales,
  type RunningChannelSales,
} from "../channels/sales/channel-sales.ts";
import type { ChannelObservation, ObservedChannel } from "../channels/watch/observed-channel.ts";
import { createSignerRecovery } from "../evm/recover-signer.ts";
import { openChannel, readChannel } from "../ledger/channels/open-channel.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { silentLogger } from "../logger.ts";
import { createChannelMetrics } from "../settle/channel-metrics.ts";
import { createStopBoard } from "../stops/stop-board.ts";
import { ledgerForEachTest, type SharedLedger } from "./ledger-for-each-test.ts";
import type { Engine } from "./settling-devnet.ts";

export const network = "eip155:9745";
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const contract = account(0x4020);
const place = { network, contract } as const;
const { recoverSigner } = createSignerRecovery();
export const price = 10n;

/** A buyer with a channel of its own. Another salt is another channel of the same signer. */
export function createVoucherBuyer({
  privateKey = generatePrivateKey(),
  salt = 0,
}: {
  privateKey?: Hex;
  salt?: number;
} = {}) {
  const signer = privateKeyToAccount(privateKey);
  const config: ChannelConfig = {
    payer: account(1),
    payerAuthorizer: toLowerHex(signer.address),
    receiver: account(3),
    receiverAuthorizer: account(4),
    token: account(5),
    withdrawDelay: 86_400,
    salt: numberToHex(salt, { size: 32 }),
  };
  const channelId = channelIdOf(config, place);
  return {
    key: { ...place, channelId },
    config,
    async present(ceiling: bigint, parts: Partial<ChannelRequest> = {}): Promise<ChannelRequest> {
      const message = { channelId, maxClaimableAmount: ceiling };
      const signature = await signer.signTypedData(voucherTypedData(message, place));
      return {
        network,
        route: "GET /weather",
        presented: { channelConfig: config, voucher: { ...message, signature } },
        price,
        fingerprint: "GET /weather",
        isSafe: true,
        isGone: () => false,
        ...parts,
      };
    },
  };
}

export function runOf(admission: ChannelAdmission) {
  if (admission.state !== "admitted") throw new Error(`Not admitted: ${admission.state}`);
  return admission.run;
}

export function repeatOf(admission: ChannelAdmission) {
  if (admission.state !== "repeated") throw new Error(`Not repeated: ${admission.state}`);
  return admission.repeat;
}

/** Sales of processes that share a ledger, before each test of a suite. Its chain is on paper. */
export interface SalesScene {
  shared: SharedLedger;
  first: LedgerContext;
  buyer: ReturnType<typeof createVoucherBuyer>;
  stops: ReturnType<typeof createStopBoard>;
  /** The state of each channel; `undefined`: it cannot be read. */
  chain: ObservedChannel["state"] | undefined;
  isSelling: boolean;
  /** Number of reads of the chain. */
  looks: number;
  /** Sales of a process. All of the balance is secure. */
  open(ledger: LedgerContext, options?: Partial<ChannelSalesOptions>): RunningChannelSales;
  /** Buys with a ceiling, and delivers. */
  buy(
    sales: RunningChannelSales,
    ceiling: bigint,
    amount?: bigint,
  ): ReturnType<ReturnType<typeof runOf>["charge"]>;
}

/** Makes the scene anew before each test of a suite. Its members are there within tests alone. */
export function salesForEachTest(engine: Engine): SalesScene {
  const shared = ledgerForEachTest(engine);
  let opened: RunningChannelSales[] = [];
  let world:
    | Pick<SalesScene, "first" | "buyer" | "stops" | "chain" | "isSelling" | "looks">
    | undefined;

  function worldNow() {
    if (world === undefined) throw new Error("No test runs.");
    return world;
  }

  beforeEach(async () => {
    world = {
      first: await shared.join("first"),
      buyer: createVoucherBuyer(),
      stops: createStopBoard(),
      isSelling: true,
      looks: 0,
      chain: { balance: 1_000n, totalClaimed: 0n, withdrawal: undefined, refundNonce: 0n },
    };
  });

  afterEach(async () => {
    for (const sales of opened) await sales.close();
    opened = [];
  });

  async function observe(
    ledger: LedgerContext,
    channelId: Hex,
    config: ChannelConfig,
  ): Promise<ChannelObservation> {
    const { chain, isSelling } = worldNow();
    worldNow().looks += 1;
    if (chain === undefined) return { kind: "stale", retryAfterSeconds: 5 };
    if (chain.balance === 0n) return { kind: "absent" };
    const key = { ...place, channelId };
    const { totalClaimed, balance } = chain;
    if ((await readChannel(ledger, key)) === undefined) {
      await openChannel(ledger, { ...key, config, totalClaimed });
      const secure = ledger.dialect.amount.encode(balance);
      await shared.read(
        sql`update channels set secure = ${secure} where channel_id = ${channelId}`,
      );
    }
    const channel = await readChannel(ledger, key);
    if (channel === undefined) throw new Error("No row");
    return { kind: "observed", channel, state: chain, isSelling, maxUnclaimed: 800n };
  }

  return {
    shared,
    get first() {
      return worldNow().first;
    },
    get buyer() {
      return worldNow().buyer;
    },
    get stops() {
      return worldNow().stops;
    },
    get chain() {
      return worldNow().chain;
    },
    set chain(chain) {
      worldNow().chain = chain;
    },
    get isSelling() {
      return worldNow().isSelling;
    },
    set isSelling(isSelling) {
      worldNow().isSelling = isSelling;
    },
    get looks() {
      return worldNow().looks;
    },
    set looks(looks) {
      worldNow().looks = looks;
    },
    open(ledger, options = {}) {
      const observer = {
        observe: (channelId: Hex, config: ChannelConfig) => observe(ledger, channelId, config),
      };
      const sales = createChannelSales({
        ledger,
        networks: [{ ...place, receiverAuthorizer: account(4), observer }],
        recoverSigner,
        stops: worldNow().stops,
        metrics: createChannelMetrics(new Registry()),
        clock: systemClock,
        logger: silentLogger,
        ...options,
      });
      opened.push(sales);
      return sales;
    },
    async buy(sales, ceiling, amount = price) {
      const run = runOf(await sales.admit(await worldNow().buyer.present(ceiling)));
      const charge = await run.charge({ amount });
      if (charge.state === "charged") charge.deliver();
      return charge;
    },
  };
}
