import { expect, it } from "vitest";
import { encodeTransfer } from "../../schemes/exact/encode-transfer.ts";
import { gasOfCall, maxCallsGas } from "../relay/gas.ts";
import { chooseBatch } from "./choose-batch.ts";
import { composeCall } from "./compose-call.ts";
import type { PreparedCandidate } from "./prepare-candidates.ts";

const address = `0x${"a5".repeat(20)}` as const;
const nonce = `0x${"5a".repeat(32)}` as const;
const signature = `0x${"77".repeat(64)}1b` as const;
/** EIP-7825. */
const maxTransactionGas = 2n ** 24n;

function candidate(gasUsed: bigint): PreparedCandidate {
  const authorization = {
    from: address,
    to: address,
    value: 1_000n,
    validAfter: 0n,
    validBefore: 2_000_000_000n,
    nonce,
  };
  const callData = encodeTransfer({ authorization, signature, payerHasCode: false });
  if (callData === undefined) throw new Error("No calldata");
  return {
    payment: {
      id: "",
      kind: "eip3009",
      authorization: { network: "eip155:1", asset: address, payer: address, nonce },
      value: 1_000n,
      validBefore: 2_000_000_000n,
      fingerprint: "",
      unusedAtBlock: undefined,
      transactionId: undefined,
      attempts: 0,
      settlesAlone: false,
      inclusion: undefined,
    },
    order: { payTo: address, validAfter: 0n, signature },
    payerHasCode: false,
    target: address,
    callData,
    gas: gasOfCall(gasUsed),
  };
}

function gasLimitOfBatch(gasUsed: bigint, maxPayments: number): bigint {
  const queue = Array.from({ length: 512 }, () => candidate(gasUsed));
  const { chosen } = chooseBatch(queue, { maxPayments, maxGas: maxCallsGas });
  const [first, ...others] = chosen;
  if (first === undefined) throw new Error("No batch");
  const options = { multicall3: address, callGasCap: 300_000n };
  return composeCall({ chosen: [first, ...others], ...options }).gasLimit;
}

it("no batch has a gas limit that a block refuses, however many payments fill it", () => {
  for (const gasUsed of [20_000n, 35_000n, 60_000n, 110_000n, 250_000n]) {
    expect(gasLimitOfBatch(gasUsed, 512)).toBeLessThan(maxTransactionGas);
  }
});

it("a batch of 64 payments of a token whose call takes 110,000 gas can burn 8.5 million", () => {
  expect(Number(gasLimitOfBatch(110_000n, 64))).toBeLessThan(8_500_000);
});

it("a batch of four payments can burn 0.6 million", () => {
  expect(Number(gasLimitOfBatch(110_000n, 4))).toBeLessThan(600_000);
});
