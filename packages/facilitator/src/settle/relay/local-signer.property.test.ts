import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { createLocalSigner } from "./local-signer.ts";
import type { RelayerTransaction } from "./relayer-signer.ts";

const hex = (bytes: { minLength: number; maxLength: number }) =>
  fc.uint8Array(bytes).map((value): `0x${string}` => `0x${Buffer.from(value).toString("hex")}`);
const fee = fc.bigInt({ min: 0n, max: 2n ** 96n });
const common = {
  chainId: fc.integer({ min: 1, max: 2 ** 40 }),
  nonce: fc.nat(2 ** 40),
  to: hex({ minLength: 20, maxLength: 20 }),
  data: hex({ minLength: 0, maxLength: 400 }),
  gas: fc.bigInt({ min: 0n, max: 2n ** 40n }),
};
const transactions: fc.Arbitrary<RelayerTransaction> = fc.oneof(
  fc.record({ ...common, type: fc.constant("legacy" as const), gasPrice: fee }),
  fc
    .record({ ...common, type: fc.constant("eip1559" as const), tip: fee, base: fee })
    .map(({ tip, base, ...others }) => ({
      ...others,
      maxPriorityFeePerGas: tip,
      maxFeePerGas: base + tip,
    })),
);
const keys = fc
  .bigInt({ min: 1n, max: 2n ** 255n })
  .map((value): `0x${string}` => `0x${value.toString(16).padStart(64, "0")}`);

describe("the signer of a key in this process", () => {
  it("signs the bytes that viem signs", async () => {
    await fc.assert(
      fc.asyncProperty(keys, transactions, async (key, transaction) => {
        const account = privateKeyToAccount(key);
        const signed = await createLocalSigner(account).signTransaction(transaction);
        expect(signed).toBe(await account.signTransaction(transaction));
      }),
      { numRuns: 200 },
    );
  });
});
