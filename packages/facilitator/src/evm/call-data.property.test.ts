import fc from "fast-check";
import { bytesToHex, parseTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import { anyAddress } from "../testing/arbitraries.ts";
import { hash } from "../testing/ledger-payments.ts";
import { callDataOf } from "./call-data.ts";

const account = privateKeyToAccount(hash(1));
const anyFee = fc.bigInt({ min: 1n, max: 2n ** 100n });

const anyTransaction = fc
  .record({
    to: anyAddress,
    // Each of the lengths that RLP writes in another way.
    data: fc
      .constantFrom(0, 1, 55, 56, 255, 256, 65_536)
      .chain((length) => fc.tuple(fc.constant(length), fc.nat({ max: 255 })))
      .map(([length, byte]) => bytesToHex(new Uint8Array(length).fill(byte))),
    gas: fc.bigInt({ min: 0n, max: 2n ** 64n }),
    nonce: fc.nat(),
    chainId: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    fee: anyFee,
    isLegacy: fc.boolean(),
  })
  .map(({ fee, isLegacy, ...common }) =>
    isLegacy
      ? ({ type: "legacy", gasPrice: fee, ...common } as const)
      : ({
          type: "eip1559",
          maxFeePerGas: fee,
          maxPriorityFeePerGas: fee,
          ...common,
        } as const),
  );

it("the call data of a signed transaction is what viem parses", async () => {
  await fc.assert(
    fc.asyncProperty(anyTransaction, async (transaction) => {
      const raw = await account.signTransaction(transaction);
      const { data = "0x" } = parseTransaction(raw);
      expect(bytesToHex(callDataOf(raw))).toBe(data);
    }),
    { numRuns: 50 },
  );
});

it("bytes that encode no transaction have no call data", () => {
  for (const raw of ["0x", "0x02", "0x02c0", "0x01c0", "0xc0", "0x80"] as const) {
    expect(() => callDataOf(raw)).toThrow();
  }
});
