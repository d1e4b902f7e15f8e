import { hexToBytes, recoverAddress, toHex } from "viem";
import { generatePrivateKey, privateKeyToAddress, sign } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { createSignerRecovery, sample } from "./recover-signer.ts";
import { splitSignature } from "./split-signature.ts";

const native = createSignerRecovery();
const noble = createSignerRecovery(() => {
  throw new Error("no binary for this machine");
});

describe("recovering a signer", () => {
  test("the known sample is one that viem agrees with", async () => {
    const { r, s, v } = sample.signature;
    const address = await recoverAddress({
      hash: sample.digest,
      signature: { r, s, yParity: v - 27 },
    });
    expect(address.toLowerCase()).toBe(sample.signer);
  });

  test("is native on this machine, and openly not so without its binary", () => {
    expect(native.implementation).toBe("native");
    expect(noble).toMatchObject({
      implementation: "noble",
      cause: new Error("no binary for this machine"),
    });
  });

  test("a native implementation that recovers somebody else is not used", () => {
    const wrong = createSignerRecovery(() => () => new Uint8Array(65).fill(4));
    expect(wrong.implementation).toBe("noble");
  });

  test.each([native, noble])("finds the account that signed: $implementation", async (recovery) => {
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
    "finds nobody where no key can have signed: $implementation",
    (recovery) => {
      // 5 is no x coordinate of the curve.
      const signature = { v: 27, r: toHex(5, { size: 32 }), s: toHex(1, { size: 32 }) } as const;
      expect(recovery.recoverSigner(hexToBytes(sample.digest), signature)).toBeUndefined();
    },
  );
});
