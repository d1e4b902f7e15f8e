import { type ChannelConfig, channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { decodeFunctionData } from "viem";
import { expect, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { type ClaimingDevnet, patience, startClaimingDevnet } from "./claiming-devnet.ts";
import type { Engine } from "./settling-devnet.ts";

/** Of `refundWithSignature`. */
const refundSelector = "0xb77433e9";

export type RefundingChannels = Awaited<ReturnType<typeof startRefundingChannels>>;

/** A devnet with sellers by channels, whose buyers ask for refunds. */
export async function startRefundingChannels(engine: Engine) {
  const here: ClaimingDevnet = await startClaimingDevnet(engine);
  const { devnet, channels } = here;

  /** A payload of a buyer, as the gate hands it over. */
  async function questionOf(config: ChannelConfig, ceiling: bigint, amount?: bigint) {
    const signature = await channels.signVoucher(config, ceiling);
    const voucher = { channelId: channels.idOf(config), maxClaimableAmount: ceiling, signature };
    const presented = { channelConfig: config, voucher };
    return { network: devnet.network, presented, amount, isGone: () => false };
  }

  /** Asks once. Blocks come while it waits. */
  async function refundOnce(
    facilitator: CoinslotFacilitator,
    config: ChannelConfig,
    ceiling: bigint,
    amount?: bigint,
  ) {
    const sales = facilitator.channels;
    if (sales === undefined) throw new Error("No channels are served.");
    return sales.refund(await questionOf(config, ceiling, amount));
  }

  /** Asks until the outcome is known. */
  function refund(
    facilitator: CoinslotFacilitator,
    config: ChannelConfig,
    ceiling: bigint,
    amount?: bigint,
  ) {
    return vi.waitFor(async () => {
      const outcome = await refundOnce(facilitator, config, ceiling, amount);
      if (outcome.state === "busy" || outcome.state === "pending") {
        await devnet.mine(1);
        throw new Error(`The refund is ${outcome.state}.`);
      }
      return outcome;
    }, patience);
  }

  /** Mines until the channel is sold on again: its refund is final. */
  function unlocked(facilitator: CoinslotFacilitator, config: ChannelConfig, ceiling: bigint) {
    return vi.waitFor(async () => {
      await devnet.mine(1);
      const admission = await here.ask(facilitator, ceiling, config);
      if (admission.state === "admitted") await admission.run.drop({ isFree: false });
      expect(admission.state).not.toBe("busy");
      return admission;
    }, patience);
  }

  /** The name of the first call in the pool. */
  function firstInPool(): Promise<string> {
    return vi.waitFor(async () => {
      const [data] = await callsInPool(devnet);
      if (data === undefined) throw new Error("The pool is empty.");
      return decodeFunctionData({ abi: channelSettlementAbi, data }).functionName;
    }, patience);
  }

  /** The refund in the pool, without the claim beside it. */
  function refundInPool(): Promise<Hex> {
    return vi.waitFor(async () => {
      const calls = await callsInPool(devnet);
      const refund = calls.find((data) => data.startsWith(refundSelector));
      if (refund === undefined) throw new Error("No refund is in the pool.");
      return refund;
    }, patience);
  }

  /** A stranger takes the signed refund out of the pool, and sends it alone, before all else. */
  async function stealRefund(): Promise<void> {
    await here.sendFirst(devnet.accounts.seller, await refundInPool());
  }

  /** A payload of a buyer on the wire. */
  async function payloadOf(config: ChannelConfig, ceiling: bigint) {
    const { channelConfig, voucher } = (await questionOf(config, ceiling)).presented;
    const { maxClaimableAmount } = voucher;
    return {
      type: "refund",
      channelConfig,
      voucher: { ...voucher, maxClaimableAmount: `${maxClaimableAmount}` },
    };
  }

  /** The ledger, for reads beside its processes. */
  async function openReads() {
    const { ledger } = here;
    const opened = await openLedger({ url: ledger.url, processId: "reads", readOnly: true });
    onTestFinished(() => opened.close());
    return { db: opened.database.kysely, dialect: opened.database.dialect };
  }

  /** Waits until a channel's mirror has this balance. Mines nothing, so no block hides the fall. */
  async function mirrored(balance: bigint) {
    const { db, dialect } = await openReads();
    await vi.waitFor(async () => {
      const states = await db.selectFrom("channel_states").select("balance").execute();
      expect(states).toContainEqual({ balance: dialect.amount.encode(balance) });
    }, patience);
  }

  return {
    ...here,
    questionOf,
    payloadOf,
    openReads,
    mirrored,
    refundOnce,
    refund,
    unlocked,
    firstInPool,
    refundInPool,
    stealRefund,
  };
}

/** Calls of the escrow in the pool of a chain that mines nothing. */
async function callsInPool(devnet: ClaimingDevnet["devnet"]): Promise<Hex[]> {
  const { pending } = await devnet.client.getTxpoolContent();
  const inputs = Object.values(pending).flatMap((each) =>
    Object.values(each).map(({ input }) => input),
  );
  return inputs.flatMap((input) => {
    const { functionName, args } = decodeFunctionData({ abi: channelSettlementAbi, data: input });
    return functionName === "multicall" ? args[0] : [input];
  });
}
