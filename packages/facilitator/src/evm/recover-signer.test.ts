import { hexToBytes, recoverAddress, toHex } from "viem";
import { generatePrivateKey, privateKeyToAddress, sign } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { createSignerRecovery, sample } from "./recover-signer.ts";
import { splitSignature } from "./split-signature.ts";

const native = createSignerRecovery();
const noble = createSignerRecovery(() => {
  throw new Error("no binary for this machine");
});

describe("signer recovery", () => {
  test("checks itself with a sample that viem confirms", async () => {
    const { r, s, v } = sample.signature;
    const address = await recoverAddress({
      hash: sample.digest,
      signature: { r, s, yParity: v - 27 },
    });
    expect(address.toLowerCase()).toBe(sample.signer);
  });

  test("is native on this machine, and reports its absence without the binary", () => {
    expect(native.implementation).toBe("native");
    expect(noble).toMatchObject({
      implementation: "noble",
      cause: new Error("no binary for this machine"),
    });
  });

  test("rejects a native implementation that recovers another address", () => {
    const wrong = createSignerRecovery(() => () => new Uint8Array(65).fill(4));
    expect(wrong.implementation).toBe("noble");
  });

  test.each([native, noble])("returns the signing account: $implementation", async (recovery) => {
    for (let i = 0; i < 20; i++) {
      const privateKey = generatePrivateKey();
      const hash = toHex(BigInt(privateKey) ^ (2n ** 255n - 1n), { size: 32 });
      const signature = splitSignature(await sign({ hash, privateKey, to: "hex" }));
      expect(signature).toBeDefined();
      if (signature === undefined) return;
      const address = recovery.recoverSigner(hexToBytes(hash), signature);
      expect(address).toBe(privateKeyToAddress(privateKey).toLowerCase());
    }
  });

  test.each([native, noble])(
    "returns undefined for a signature that no key can make: $implementation",
    (recovery) => {
      // 5 is not an x coordinate of the curve.
      const signature = { v: 27, r: toHex(5, { size: 32 }), s: toHex(1, { size: 32 }) } as const;
      expect(recovery.recoverSigner(hexToBytes(sample.digest), signature)).toBeUndefined();
    },
  );
});
