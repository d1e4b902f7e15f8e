import { isSameAddress } from "@coinslot/protocol";
import { decodeFunctionData, type Hex, isHex, parseAbi, parseTransaction } from "viem";
import type * as z from "zod";
import type { timelineResult } from "./timeline-result.ts";

type Message = NonNullable<
  z.infer<typeof timelineResult>["transactions"][number]["forms"][number]["message"]
>;
type Transfer = NonNullable<Message["transfer"]>;

const transferAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);
const batchAbi = parseAbi([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls)",
]);

/**
 * Decodes a signed transaction, without signatures: neither its own nor those in its calls.
 *
 * @returns `null` for one of another form
 */
export function decodeTransaction(
  raw: string,
  payment: { payer: string; nonce: string },
): Message | null {
  if (!isHex(raw)) return null;
  try {
    const transaction = parseTransaction(raw);
    const { to, data = "0x", nonce = 0, gas = 0n, type = "legacy" } = transaction;
    const calls = callsOf(to ?? "0x", data);
    const transfers = calls.flatMap(({ target, data: call }) => decodeTransfer(target, call));
    const transfer = transfers.find(
      ({ from, nonce: of }) => isSameAddress(from, payment.payer) && of === payment.nonce,
    );
    return {
      type,
      to: to?.toLowerCase() ?? null,
      nonce,
      gas: gas.toString(),
      calls: calls.length,
      transfer: transfer ?? null,
    };
  } catch {
    return null;
  }
}

interface Call {
  target: string;
  data: Hex;
}

function callsOf(target: string, data: Hex): Call[] {
  if (data === "0x") return [];
  try {
    const { args } = decodeFunctionData({ abi: batchAbi, data });
    return args[0].map((call) => ({ target: call.target, data: call.callData }));
  } catch {
    return [{ target, data }];
  }
}

function decodeTransfer(token: string, data: Hex): Transfer[] {
  try {
    const { args } = decodeFunctionData({ abi: transferAbi, data });
    const [from, to, value, validAfter, validBefore, nonce] = args;
    return [
      {
        token: token.toLowerCase(),
        from: from.toLowerCase(),
        to: to.toLowerCase(),
        value: value.toString(),
        validAfter: validAfter.toString(),
        validBefore: validBefore.toString(),
        nonce: nonce.toLowerCase(),
      },
    ];
  } catch {
    return [];
  }
}
