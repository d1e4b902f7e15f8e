import {
  blockByNumber,
  parseBlockHeader,
  RpcClosedError,
  type RpcRequester,
} from "@coinslot/chain";
import * as z from "zod";
import { withSignal } from "../evidence/with-signal.ts";
import type { Fees } from "./fee-quote.ts";
import { largest } from "./largest.ts";

const quantitySchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);
/** Time of an endpoint. Payments wait meanwhile. */
const eachMs = 5_000;

/**
 * The fees that each endpoint names for the next blocks; none of one that does not answer in time.
 *
 * @param tip to offer instead of theirs
 */
export async function readFeesByEach(
  endpoints: readonly RpcRequester[],
  tip: bigint | undefined,
): Promise<Fees[]> {
  const signal = AbortSignal.timeout(eachMs);
  const named = await Promise.all(
    endpoints.map(async (endpoint) => {
      try {
        return await readFees(withSignal(endpoint, signal), tip);
      } catch (error) {
        if (error instanceof RpcClosedError) throw error;
        return undefined;
      }
    }),
  );
  return named.filter((each) => each !== undefined);
}

async function readFees(endpoint: RpcRequester, fixedTip: bigint | undefined) {
  const methods = ["eth_gasPrice", ...(fixedTip === undefined ? ["eth_maxPriorityFeePerGas"] : [])];
  const calls = [blockByNumber("latest"), ...methods.map((method) => ({ method }))];
  const outcomes = await endpoint.requestMany(calls);
  const [block, price, named] = outcomes.map((each) => (each.ok ? each.result : undefined));
  const header = parseBlockHeader(block);
  if (header === undefined) return undefined;
  const { baseFeePerGas } = header;
  if (baseFeePerGas === undefined) {
    const { data } = quantitySchema.safeParse(price);
    return data === undefined ? undefined : legacy((data * 5n) / 4n);
  }
  const tip = fixedTip ?? quantitySchema.safeParse(named).data;
  if (tip === undefined) return undefined;
  return eip1559(2n * baseFeePerGas + tip, tip);
}

/**
 * The highest of these fees in each part. Where one names no base fee, in the form that every chain
 * takes.
 */
export function highestOf(fees: readonly Fees[]): Fees {
  const price = largest(fees.map(priceOf));
  const tips = fees.flatMap((each) => (each.type === "eip1559" ? each.maxPriorityFeePerGas : []));
  return tips.length < fees.length ? legacy(price) : eip1559(price, largest(tips));
}

/** The most that a transaction with these fees can pay for its gas. */
export function priceOf(fees: Fees): bigint {
  return fees.type === "legacy" ? fees.gasPrice : fees.maxFeePerGas;
}

function legacy(gasPrice: bigint): Fees {
  return { type: "legacy", gasPrice };
}

function eip1559(maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees {
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
}
