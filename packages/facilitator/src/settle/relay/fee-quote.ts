import type { BlockHeader, FeeModel, RpcPool } from "@coinslot/chain";
import * as z from "zod";
import { highestOf, priceOf, readFeesByEach } from "./fees-by-each.ts";

/** Fees to offer for gas, in wei. */
export type Fees =
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
  | { type: "legacy"; gasPrice: bigint };

export interface FeeQuoterOptions {
  rpc: Pick<RpcPool, "request" | "endpoints">;
  feeModel: FeeModel;
  /** Cap on every offer, replacements included, in wei per gas. */
  maxFeePerGasCap: bigint;
  /** Tip to offer instead of the node's, in wei per gas. */
  tip?: bigint | undefined;
  /** The newest block, or what it was at most this long ago. */
  readHead: (maxAgeMs: number) => Promise<Pick<BlockHeader, "baseFeePerGas">>;
  /** Time since that block was found to be the newest. */
  headAgeMs: () => number;
  /** Milliseconds. */
  now: () => number;
}

/** Quotes fees for transactions. */
export interface FeeQuoter {
  /** `undefined`: the chain asks more than the cap allows, so nothing should be sent now. */
  quote(): Promise<Fees | undefined>;
  /**
   * Fees for a transaction that is worth the cap and has a deadline. First the highest that the
   * endpoints name, in each part: one that understates them holds nothing up. Then those of each
   * endpoint, the dearest first, for a relayer that cannot pay more. None is above the cap.
   */
  offers(): Promise<readonly Fees[]>;
  /**
   * Fees of a replacement: at least an eighth more than before in every part, and at least today's
   * quote. Pools ask for a tenth. `undefined`: that is over the cap.
   */
  raise(before: Fees): Promise<Fees | undefined>;
  /**
   * The node's tip, asked for again where it is older; `undefined` on a chain where none is asked
   * for. A quote then needs no request.
   *
   * @throws RpcError when the chain is unreachable.
   */
  refreshTip(maxAgeMs: number): Promise<bigint | undefined>;
  /** Takes over a tip that another process has read. */
  learnTip(tip: bigint): void;
}

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);

/** Age of a base fee, a tip or a price that is as good as new. */
const freshMs = 5_000;
/** Oldest base fee and tip for a quote: they are read once a minute while nothing is open. */
const quietMs = 90_000;

/**
 * Quotes fees from the base fee of the newest block, and from the node's tip. After a quiet time
 * both may be a minute old. So a payment that comes alone costs no request for them. The
 * offered fee lasts for twelve full blocks, and a transaction that waits longer is replaced.
 */
export function createFeeQuoter(options: FeeQuoterOptions): FeeQuoter {
  const { rpc, feeModel, maxFeePerGasCap, tip: fixedTip, now } = options;
  const { readHead, headAgeMs } = options;
  const tips = remember("eth_maxPriorityFeePerGas");
  const prices = remember("eth_gasPrice");
  /** For the urgent calls of one plan. */
  let offered: { offers: readonly Fees[]; at: number } | undefined;
  const asksTip = fixedTip === undefined && feeModel !== "eip1559-without-tip";

  function remember(method: string) {
    let known: { value: bigint; at: number } | undefined;
    function put(value: bigint): bigint {
      known = { value, at: now() };
      return value;
    }
    return {
      put,
      async read(maxAgeMs: number): Promise<bigint> {
        if (known && now() - known.at < maxAgeMs) return known.value;
        return put(quantity.parse(await rpc.request({ method })));
      },
    };
  }

  /**
   * Fees by a base fee and a tip of at most this age. A full block raises the first by an eighth.
   */
  async function feesBy(maxAgeMs: number): Promise<{ fees: Fees; least: bigint }> {
    const { baseFeePerGas: baseFee } = await readHead(maxAgeMs);
    if (baseFee === undefined) {
      const price = await prices.read(freshMs);
      return { fees: { type: "legacy", gasPrice: (price * 5n) / 4n }, least: price };
    }
    const tip = asksTip ? max(await tips.read(maxAgeMs), 1n) : (fixedTip ?? 0n);
    // Twice as much lasts for six full blocks, four times for twelve.
    const maxFeePerGas = (headAgeMs() > freshMs ? 4n : 2n) * baseFee + tip;
    return {
      fees: { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: tip },
      least: baseFee,
    };
  }

  function capped(fees: Fees, least: bigint): Fees | undefined {
    if (priceOf(fees) <= maxFeePerGasCap) return fees;
    return least > maxFeePerGasCap ? undefined : cut(fees);
  }

  /** Fees, none of them above the cap. */
  function cut(fees: Fees): Fees {
    const price = min(priceOf(fees), maxFeePerGasCap);
    if (fees.type === "legacy") return { type: "legacy", gasPrice: price };
    const tip = min(fees.maxPriorityFeePerGas, price);
    return { type: "eip1559", maxFeePerGas: price, maxPriorityFeePerGas: tip };
  }

  return {
    async quote() {
      const quiet = await feesBy(quietMs);
      // The cap may cut what is offered for an old base fee, or refuse it: the new one decides.
      if (priceOf(quiet.fees) <= maxFeePerGasCap) return quiet.fees;
      const { fees, least } = await feesBy(freshMs);
      return capped(fees, least);
    },
    async offers() {
      if (offered && now() - offered.at < freshMs) return offered.offers;
      const tip = asksTip ? undefined : (fixedTip ?? 0n);
      const named = rpc.endpoints.length > 1 ? await readFeesByEach(rpc.endpoints, tip) : [];
      if (named.length === 0) return [cut((await feesBy(freshMs)).fees)];
      const byPrice = named.sort((a, b) => (priceOf(a) < priceOf(b) ? 1 : -1));
      const offers = [highestOf(named), ...byPrice].map(cut);
      offered = { offers, at: now() };
      return offers;
    },
    async raise(before) {
      const { fees } = await feesBy(freshMs);
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
    async refreshTip(maxAgeMs) {
      if (!asksTip) return undefined;
      const { baseFeePerGas } = await readHead(quietMs);
      return baseFeePerGas === undefined ? undefined : tips.read(maxAgeMs);
    },
    learnTip: (tip) => void tips.put(tip),
  };
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
