import type { Hex } from "@coinslot/protocol";
import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { anyAddress } from "../../testing/arbitraries.ts";
import { createRelayerSigner, type RelayerTransaction } from "./relayer-signer.ts";

const anyKey = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .filter((key) => key[0] !== 0xff && key.some((byte) => byte !== 0));
const hexOf = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString("hex")}`;

const anyCall = fc.record({
  chainId: fc.integer({ min: 1, max: 2 ** 31 }),
  nonce: fc.nat(),
  to: anyAddress,
  data: fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map(hexOf),
    // Lengths of two and three bytes.
    fc.constantFrom(255, 256, 70_000).map((length): Hex => `0x${"5a".repeat(length)}`),
  ),
  gas: fc.bigInt({ min: 0n, max: 2n ** 40n }),
});
const anyWei = fc.bigInt({ min: 0n, max: 2n ** 70n });
const anyTransaction: fc.Arbitrary<RelayerTransaction> = fc.oneof(
  fc
    .tuple(anyCall, anyWei)
    .map(([call, gasPrice]): RelayerTransaction => ({ ...call, type: "legacy", gasPrice })),
  fc.tuple(anyCall, anyWei, anyWei).map(
    ([call, tip, more]): RelayerTransaction => ({
      ...call,
      type: "eip1559",
      maxPriorityFeePerGas: tip,
      maxFeePerGas: tip + more,
    }),
  ),
);

test("a transaction that is signed natively is, byte for byte, the one that viem signs", async () => {
  await fc.assert(
    fc.asyncProperty(anyKey, anyTransaction, async (privateKey, transaction) => {
      const account = privateKeyToAccount(hexOf(privateKey));
      const signer = createRelayerSigner({ account, privateKey });
      expect(signer).not.toBe(account);
      expect(signer.address).toBe(account.address);
      expect(await signer.signTransaction(transaction)).toBe(
        await account.signTransaction(transaction),
      );
    }),
    { numRuns: 60 },
  );
});

test("an account whose key another one is given for signs by itself", () => {
  const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
  expect(createRelayerSigner({ account, privateKey: Buffer.alloc(32, 2) })).toBe(account);
});
