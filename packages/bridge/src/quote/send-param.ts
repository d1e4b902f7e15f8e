import { type Address, encodeFunctionData, type Hex } from "viem";
import { oftAbi } from "../chains/oft-abi.ts";

/** OFT's `SendParam`. */
export interface SendParam {
  dstEid: number;
  to: Hex;
  amountLD: bigint;
  minAmountLD: bigint;
  extraOptions: Hex;
  composeMsg: Hex;
  oftCmd: Hex;
}

/** LayerZero options of type 3, empty: the contracts add their own on arrival. */
const noOptions: Hex = "0x0003";

const minOfThousand = 999n;

/** The least that may arrive of an amount: 999 of 1000, rounded down. */
export function minAcceptable(amount: bigint): bigint {
  return (amount * minOfThousand) / 1000n;
}

/** A plain transfer, without a message to a contract. */
export function toSendParam(transfer: {
  dstEid: number;
  to: Hex;
  amount: bigint;
  minAmount: bigint;
}): SendParam {
  return {
    dstEid: transfer.dstEid,
    to: transfer.to,
    amountLD: transfer.amount,
    minAmountLD: transfer.minAmount,
    extraOptions: noOptions,
    composeMsg: "0x",
    oftCmd: "0x",
  };
}

/**
 * Calldata of OFT's `send`. The fee is paid in the native coin; the excess is refunded to
 * `refundTo`.
 */
export function encodeSend(options: {
  param: SendParam;
  nativeFee: bigint;
  refundTo: Address;
}): Hex {
  const { param, nativeFee, refundTo } = options;
  return encodeFunctionData({
    abi: oftAbi,
    functionName: "send",
    args: [param, { nativeFee, lzTokenFee: 0n }, refundTo],
  });
}
