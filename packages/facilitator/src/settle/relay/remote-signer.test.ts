import type { Hex } from "@coinslot/protocol";
import { secp256k1 } from "@noble/curves/secp256k1";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { RelayerTransaction } from "./relayer-signer.ts";
import { createRemoteSigner, type HashSigner } from "./remote-signer.ts";

const key = generatePrivateKey();
const account = privateKeyToAccount(key);
const { address } = account;
const stranger = privateKeyToAccount(generatePrivateKey());
const common = {
  chainId: 9745,
  nonce: 7,
  to: stranger.address,
  data: "0xabcd",
  gas: 60_000n,
} as const;
const modern: RelayerTransaction = {
  ...common,
  type: "eip1559",
  maxFeePerGas: 10n,
  maxPriorityFeePerGas: 1n,
};
const legacy: RelayerTransaction = { ...common, type: "legacy", gasPrice: 10n };
const transactions = [modern, legacy];

/** As a KMS signs: r and s in DER, with the low s or the high one. */
function signDer(hash: Hex, s: "low" | "high"): Uint8Array {
  const low = secp256k1.sign(hash.slice(2), key.slice(2));
  const { n } = secp256k1.CURVE;
  return new secp256k1.Signature(low.r, s === "low" ? low.s : n - low.s).toDERRawBytes();
}

describe("a remote signer", () => {
  it.each([
    ["65 bytes in hex", ({ hash }: { hash: Hex }) => account.sign({ hash })],
    ["DER with a low s", async ({ hash }: { hash: Hex }) => signDer(hash, "low")],
    ["DER with a high s", async ({ hash }: { hash: Hex }) => signDer(hash, "high")],
  ])("signs the bytes that viem signs, from %s", async (_form, sign) => {
    const signer = createRemoteSigner({ address, sign });
    for (const transaction of transactions) {
      expect(await signer.signTransaction(transaction)).toBe(
        await account.signTransaction(transaction),
      );
    }
  });

  it("takes an account that signs transactions", async () => {
    const { signTransaction } = account;
    const signer = createRemoteSigner({ address, signTransaction });
    for (const transaction of transactions) {
      expect(await signer.signTransaction(transaction)).toBe(await signTransaction(transaction));
    }
  });

  it.each<[string, Omit<HashSigner, "address">["sign"]]>([
    ["of another key", ({ hash }) => stranger.sign({ hash })],
    ["of another hash", () => account.sign({ hash: `0x${"11".repeat(32)}` })],
    [
      "of another key, in DER",
      async () => secp256k1.sign("11".repeat(32), key.slice(2)).toDERRawBytes(),
    ],
    ["of no form", async () => "0x1234"],
    ["of no DER", async () => Uint8Array.of(1, 2, 3)],
    [
      "of a high s in hex",
      async ({ hash }) => `0x${Buffer.from(signDer(hash, "high")).toString("hex").slice(8)}`,
    ],
  ])("refuses a signature %s", async (_case, sign) => {
    const signer = createRemoteSigner({ address, sign });
    await expect(signer.signTransaction(modern)).rejects.toMatchObject({ kind: "wrong" });
  });

  it.each<[string, Partial<Pick<RelayerTransaction, "to" | "data" | "chainId" | "nonce" | "gas">>]>(
    [
      ["recipient", { to: address }],
      ["call", { data: "0x" }],
      ["chain", { chainId: 1 }],
      ["nonce", { nonce: 8 }],
      ["gas", { gas: 70_000n }],
    ],
  )("refuses a transaction with another %s than was asked", async (_case, change) => {
    for (const transaction of transactions) {
      const signer = createRemoteSigner({
        address,
        signTransaction: (asked) => account.signTransaction({ ...asked, ...change }),
      });
      await expect(signer.signTransaction(transaction)).rejects.toMatchObject({ kind: "wrong" });
    }
  });

  it("is not waited for longer than its time, and a late signature is dropped", async () => {
    const signals: AbortSignal[] = [];
    const signer = createRemoteSigner(
      {
        address,
        sign({ signal }) {
          signals.push(signal);
          return new Promise<never>(() => undefined);
        },
      },
      { timeoutMs: 10 },
    );
    await expect(signer.signTransaction(modern)).rejects.toMatchObject({ kind: "timeout" });
    expect(signals).toMatchObject([{ aborted: true }]);
  });

  it("rests after each failure, twice as long as before, and is not asked meanwhile", async () => {
    let now = 0;
    let asked = 0;
    let isAway = true;
    const sign: HashSigner["sign"] = async ({ hash }) => {
      asked += 1;
      if (isAway) throw new Error("token abc is not allowed");
      return account.sign({ hash });
    };
    const signer = createRemoteSigner({ address, sign }, { now: () => now });
    expect(signer.fault?.()).toBeUndefined();
    for (const restsForMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      const failure = await signer.signTransaction(modern).catch((error: unknown) => error);
      expect(failure).toMatchObject({ kind: "failed", message: `The signer of ${address} failed` });
      expect(signer.fault?.()).toMatchObject({ error: failure, restsForMs });
      const before = asked;
      await expect(signer.signTransaction(modern)).rejects.toBe(failure);
      expect(asked).toBe(before);
      now += restsForMs;
      expect(signer.fault?.()).toBeUndefined();
    }
    isAway = false;
    await signer.signTransaction(modern);
    isAway = true;
    await expect(signer.signTransaction(modern)).rejects.toThrow();
    expect(signer.fault?.()).toMatchObject({ restsForMs: 1_000 });
  });
});
