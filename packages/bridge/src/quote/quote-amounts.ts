import type { Address, PublicClient } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { askChain } from "../chains/ask-chain.ts";
import { oftAbi } from "../chains/oft-abi.ts";
import { minAcceptable, toSendParam } from "./send-param.ts";

/** An OFT's answer on an amount before it is sent, in the token's smallest unit. */
export interface AmountQuote {
  /**
   * The amount that would leave the account, without the part that no other chain can represent.
   */
  amountSent: bigint;
  /** The amount that would arrive. */
  amountReceived: bigint;
  /** The contract's bounds for one transfer. */
  limits: { min: bigint; max: bigint };
}

/**
 * Reads from an OFT how much of an amount would leave and arrive.
 *
 * @throws BridgeError `invalid_contract`, `amount_too_small`, `amount_too_large`, `loss_too_large`,
 * `refused_by_contract`, `rpc_unavailable`
 */
export async function quoteAmounts(
  client: PublicClient,
  options: {
    contract: Address;
    dstEid: number;
    to: `0x${string}`;
    amount: bigint;
    subject: string;
  },
): Promise<AmountQuote> {
  const { contract, dstEid, to, amount, subject } = options;
  // No minimum in the question: the contract returns any amount, and the check below refuses with a
  // message.
  const param = toSendParam({ dstEid, to, amount, minAmount: 0n });
  const call = { address: contract, abi: oftAbi, functionName: "quoteOFT", args: [param] } as const;
  const [limit, , receipt] = await askChain(subject, client.readContract(call));
  const limits = { min: limit.minAmountLD, max: limit.maxAmountLD };
  const { amountSentLD: amountSent, amountReceivedLD: amountReceived } = receipt;
  // The approval covers `amountSent`, so it may not exceed the request.
  if (amountSent > amount) {
    const text = `${contract} would take ${amountSent} instead of ${amount}`;
    throw new BridgeError("invalid_contract", text);
  }
  if (amountReceived === 0n || amount < limits.min) {
    const least = limits.min > 0n ? `the contract takes ${limits.min} or more` : "nothing arrives";
    throw new BridgeError("amount_too_small", `${amount} is too little: ${least}`);
  }
  if (amount > limits.max) {
    const text = `${amount} is too much: the contract takes ${limits.max} per transfer`;
    throw new BridgeError("amount_too_large", text);
  }
  if (amountReceived < minAcceptable(amount)) {
    const text = `Of ${amount}, only ${amountReceived} would arrive: less than 999 of 1000`;
    throw new BridgeError("loss_too_large", text);
  }
  return { amountSent, amountReceived, limits };
}
