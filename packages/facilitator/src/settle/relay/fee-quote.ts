import type { FeeModel, RpcRequester } from "@coinslot/chain";
import * as z from "zod";

/** Fees to offer for gas, in wei. */
export type Fees =
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
  | { type: "legacy"; gasPrice: bigint };

export interface FeeQuoterOptions {
  rpc: RpcRequester;
  feeModel: FeeModel;
  /** Cap on every offer, replacements included, in wei per gas. */
  maxFeePerGasCap: bigint;
  /** Tip to offer instead of the node's, in wei per gas. */
  tip?: bigint | undefined;
  /** Base fee of the newest block; `undefined` on a chain without EIP-1559. */
  baseFeePerGas: () => bigint | undefined;
  /** Milliseconds. */
  now: () => number;
}

/** Quotes fees for transactions. */
export interface FeeQuoter {
  /** `undefined`: the chain asks more than the cap allows, so nothing should be sent now. */
  quote(): Promise<Fees | undefined>;
  /**
   * Fees of a replacement: at least an eighth more than before in every part, since pools ask for a
   * tenth, and at least today's quote. `undefined`: that is over the cap.
   */
  raise(before: Fees): Promise<Fees | undefined>;
}

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);

/** Time for which a node's tip and price are cached. */
const freshMs = 5_000;

/**
 * Quotes fees from the newest block's base fee, and from the node's tip, which is refreshed now and
 * then.
 */
export function createFeeQuoter(options: FeeQuoterOptions): FeeQuoter {
  const { rpc, feeModel, maxFeePerGasCap, tip: fixedTip, baseFeePerGas, now } = options;
  const askTip = remember("eth_maxPriorityFeePerGas");
  const askPrice = remember("eth_gasPrice");

  function remember(method: string): () => Promise<bigint> {
    let known: { value: bigint; at: number } | undefined;
    return async () => {
      if (known && now() - known.at < freshMs) return known.value;
      const value = quantity.parse(await rpc.request({ method }));
      known = { value, at: now() };
      return value;
    };
  }

  async function today(): Promise<Fees> {
    const baseFee = baseFeePerGas();
    if (baseFee === undefined) return { type: "legacy", gasPrice: ((await askPrice()) * 5n) / 4n };
    const tip = fixedTip ?? (feeModel === "eip1559-without-tip" ? 0n : max(await askTip(), 1n));
    // Full blocks raise the base fee by an eighth each: twice as much lasts for six of them.
    return { type: "eip1559", maxFeePerGas: 2n * baseFee + tip, maxPriorityFeePerGas: tip };
  }

  function capped(fees: Fees, least: bigint): Fees | undefined {
    if (priceOf(fees) <= maxFeePerGasCap) return fees;
    if (least > maxFeePerGasCap) return undefined;
    if (fees.type === "legacy") return { type: "legacy", gasPrice: maxFeePerGasCap };
    return {
      type: "eip1559",
      maxFeePerGas: maxFeePerGasCap,
      maxPriorityFeePerGas: min(fees.maxPriorityFeePerGas, maxFeePerGasCap),
    };
  }

  return {
    async quote() {
      const fees = await today();
      const least = fees.type === "legacy" ? (fees.gasPrice * 4n) / 5n : (baseFeePerGas() ?? 0n);
      return capped(fees, least);
    },
    async raise(before) {
      const fees = await today();
      if (before.type === "legacy") {
        const least = raised(before.gasPrice);
        return capped({ type: "legacy", gasPrice: max(least, priceOf(fees)) }, least);
      }
      const minTip = raised(before.maxPriorityFeePerGas);
      const tip = fees.type === "eip1559" ? fees.maxPriorityFeePerGas : 0n;
      const least = raised(before.maxFeePerGas);
      return capped(
        {
          type: "eip1559",
          maxFeePerGas: max(least, priceOf(fees)),
          maxPriorityFeePerGas: max(minTip, tip),
        },
        least,
      );
    },
  };
}

/** The most that a transaction with these fees can pay for its gas. */
export function priceOf(fees: Fees): bigint {
  return fees.type === "legacy" ? fees.gasPrice : fees.maxFeePerGas;
}

function raised(fee: bigint): bigint {
  return fee + fee / 8n + 1n;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
