import { CallerLimitedError, FacilitatorError, type VerifyOptions } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { TestPayment } from "../testing/payments.ts";
import {
  createTestVerifier,
  startVerifyingDevnet,
  type VerifyingDevnet,
} from "../testing/verifying-devnet.ts";
import { toVerifyResponse } from "./verdict.ts";
import type { Verifier } from "./verifier.ts";

let chain: VerifyingDevnet;
let verifier: Verifier;
let passedMs: number;

beforeAll(async () => {
  chain = await startVerifyingDevnet();
  // The first call of a pool also asks for the chain id.
  await chain.pool.request({ method: "eth_blockNumber", params: [] });
});

beforeEach(() => {
  passedMs = 0;
  const startMs = Math.ceil(Date.now() / 60_000) * 60_000 - 59_000;
  const { devnet, pool } = chain;
  verifier = createTestVerifier({ devnet, pool, now: () => startMs + passedMs });
});

afterAll(async () => {
  await chain?.stop();
});

const shop: VerifyOptions = { limitKey: "address 203.0.113.9" };

function freshAccount() {
  return privateKeyToAccount(generatePrivateKey());
}

/** Signed by a key, in the name of another payer. */
function forge(from = freshAccount().address) {
  return chain.sign({ signer: freshAccount(), authorization: { from } });
}

async function verify(payment: Awaited<ReturnType<typeof forge>>, options = shop) {
  const { paymentPayload, paymentRequirements } = payment;
  return toVerifyResponse(await verifier.verify(paymentPayload, paymentRequirements, options));
}

/** The calls that a node answers while `work` runs; a batch of n counts as n. */
async function callsOf(work: () => Promise<unknown>): Promise<number> {
  const before = chain.requests.length;
  await work();
  const bodies = chain.requests.slice(before).map((body): unknown => JSON.parse(body));
  return bodies.reduce<number>((sum, body) => sum + (Array.isArray(body) ? body.length : 1), 0);
}

async function deployWallet() {
  const owner = chain.devnet.accounts.buyer.address;
  const wallet = await chain.devnet.deploySmartAccount({ owner });
  await chain.devnet.mint({ to: wallet, amount: 50_000n });
  return wallet;
}

function signAsWallet(wallet: TestPayment["payTo"], change: Partial<TestPayment> = {}) {
  return chain.sign({ authorization: { from: wallet }, ...change });
}

/** Verifies a payment of the wallet, and says that it was settled. */
async function payAs(wallet: TestPayment["payTo"], options = shop) {
  const { paymentPayload, paymentRequirements } = await signAsWallet(wallet);
  const verdict = await verifier.verify(paymentPayload, paymentRequirements, options);
  if (!verdict.isValid) throw new Error(verdict.invalidReason);
  verifier.prove(verdict.payment);
}

const refused = { isValid: false, invalidReason: "invalid_exact_evm_signature" };

describe("a forged payment", () => {
  test("costs one call for its sender's code, and later ones of that sender cost none", async () => {
    const victim = freshAccount().address;
    expect(
      await callsOf(async () => expect(await verify(await forge(victim))).toMatchObject(refused)),
    ).toBe(1);
    const more = await Promise.all(Array.from({ length: 100 }, () => forge(victim)));
    expect(
      await callsOf(async () => {
        for (const payment of more) expect(await verify(payment)).toMatchObject(refused);
      }),
    ).toBe(0);
  });

  test("is refused before its body is read, as when it is verified", async () => {
    const { paymentPayload, paymentRequirements } = await forge();
    const screened = await verifier.screen(paymentPayload, paymentRequirements, shop);
    expect(toVerifyResponse(screened)).toMatchObject(refused);
  });

  test("a forged payment in a burst with one sender shares one call for the code", async () => {
    const victim = freshAccount().address;
    const burst = await Promise.all(Array.from({ length: 20 }, () => forge(victim)));
    expect(await callsOf(() => Promise.all(burst.map((payment) => verify(payment))))).toBe(1);
  });

  test("a forged payment with ever new senders costs no more calls than its caller's budget of a minute", async () => {
    const burst = await Promise.all(Array.from({ length: 200 }, () => forge()));
    const calls = await callsOf(async () => {
      const outcomes = await Promise.allSettled(burst.map((payment) => verify(payment)));
      const limited = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
      expect(limited).toHaveLength(170);
      for (const error of limited) {
        expect(error).toBeInstanceOf(CallerLimitedError);
        expect(error).toMatchObject({ kind: "unavailable", retryAfterSeconds: 59 });
      }
    });
    expect(calls).toBe(30);

    const honest = await chain.sign();
    expect(await verify(honest)).toMatchObject({ isValid: true });
    const elsewhere = { limitKey: "address 198.51.100.7" };
    expect(await verify(await forge(), elsewhere)).toMatchObject(refused);
    passedMs = 60_000;
    expect(await verify(await forge())).toMatchObject(refused);
  });

  test("counts against all callers together as well, so that many callers cost no more", async () => {
    const limits = { limits: { perCaller: 2, perProvenPayer: 2, total: 5 } };
    const { devnet, pool } = chain;
    verifier = createTestVerifier({ devnet, pool, ...limits });
    const burst = await Promise.all(Array.from({ length: 20 }, () => forge()));
    const calls = await callsOf(async () => {
      const outcomes = await Promise.allSettled(
        burst.map((payment, n) => verify(payment, { limitKey: `address ${n}` })),
      );
      const limited = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
      expect(limited).toHaveLength(15);
      // Honest callers are shut out with them: that is a fault of the house, and no caller's.
      for (const error of limited) {
        expect(error).toBeInstanceOf(FacilitatorError);
        expect(error).not.toBeInstanceOf(CallerLimitedError);
      }
    });
    expect(calls).toBe(5);
  });

  test("a forged payment in the name of a wallet costs its caller's budget, and never the wallet's", async () => {
    const wallet = await deployWallet();
    const forged = await Promise.all(Array.from({ length: 60 }, () => forge(wallet)));
    const outcomes = await Promise.allSettled(forged.map((payment) => verify(payment)));
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(30);

    const good = await signAsWallet(wallet);
    expect(await verify(good, { limitKey: "address 198.51.100.7" })).toMatchObject({
      isValid: true,
    });
  });
});

describe("a wallet that has paid through a caller", () => {
  test("adds one further budget for forgeries in its name, and no more", async () => {
    const wallet = await deployWallet();
    await payAs(wallet);
    const forged = await Promise.all(Array.from({ length: 80 }, () => forge(wallet)));
    const outcomes = await Promise.allSettled(forged.map((payment) => verify(payment)));
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(20);
  });

  test("adds no budget through another caller", async () => {
    const wallet = await deployWallet();
    await payAs(wallet, { limitKey: "address 198.51.100.7" });
    const forged = await Promise.all(Array.from({ length: 40 }, () => forge(wallet)));
    const outcomes = await Promise.allSettled(forged.map((payment) => verify(payment)));
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(10);
  });

  test("adds no more for all such wallets together than all callers have", async () => {
    const { devnet, pool } = chain;
    const limits = { perCaller: 2, perProvenPayer: 2, total: 5 };
    const time = Date.now();
    verifier = createTestVerifier({ devnet, pool, limits, now: () => time });
    const wallets = [await deployWallet(), await deployWallet(), await deployWallet()];
    for (const wallet of wallets) await payAs(wallet);
    let admitted = 0;
    for (const wallet of wallets) {
      for (let count = 0; count < 5; count += 1) {
        const outcome = await verify(await forge(wallet)).catch(() => undefined);
        if (outcome !== undefined) admitted += 1;
      }
    }
    expect(admitted).toBe(5 + 2);
  });
});

describe("a wallet that signs by code", () => {
  test("adds no budget by valid payments that were never settled, nor do many such", async () => {
    const wallets = [await deployWallet(), await deployWallet(), await deployWallet()];
    for (const wallet of wallets) {
      expect(await verify(await signAsWallet(wallet))).toMatchObject({ isValid: true });
    }
    const forged = await Promise.all(
      Array.from({ length: 60 }, (_, index) => forge(wallets[index % wallets.length])),
    );
    const outcomes = await Promise.allSettled(forged.map((payment) => verify(payment)));
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(30);
  });

  test("uses up no budget with valid payments", async () => {
    const wallet = await deployWallet();
    for (let count = 0; count < 40; count += 1) {
      expect(await verify(await signAsWallet(wallet))).toMatchObject({ isValid: true });
    }
  });

  test("a wallet that signs by code that has paid through a caller still pays when that caller presents forged payments", async () => {
    const wallet = await deployWallet();
    await payAs(wallet);
    const forged = await Promise.all(Array.from({ length: 60 }, () => forge()));
    await Promise.allSettled(forged.map((payment) => verify(payment)));
    expect(await verify(await signAsWallet(wallet))).toMatchObject({ isValid: true });
    await expect(verify(await signAsWallet(await deployWallet()))).rejects.toMatchObject({
      kind: "unavailable",
    });
  });

  test("a wallet that signs by code and refuses repeatedly costs no more than its caller's budget", async () => {
    const wallet = await deployWallet();
    const bad = await Promise.all(
      Array.from({ length: 60 }, () => signAsWallet(wallet, { signer: freshAccount() })),
    );
    const calls = await callsOf(async () => {
      for (const payment of bad) await verify(payment).catch(() => undefined);
    });
    // The code once; then a trial and a question for each that is let through, and the token's
    // facts.
    expect(calls).toBeLessThanOrEqual(1 + 2 * 30 + 6);
  });
});

describe("an account whose code changes", () => {
  const delegate = async (signer: ReturnType<typeof freshAccount>, to: TestPayment["payTo"]) => {
    const { client } = chain.devnet;
    const hash = await client.sendTransaction({
      to: client.account.address,
      authorizationList: [await client.signAuthorization({ account: signer, contractAddress: to })],
    });
    await client.waitForTransactionReceipt({ hash });
  };

  test("an account whose code changes and refuses its key's signature costs no more than its caller's budget", async () => {
    const signer = freshAccount();
    await chain.devnet.mint({ to: signer.address, amount: 50_000n });
    await delegate(signer, await chain.devnet.deploySmartAccount());
    const refuses: `0x${string}` = `0x${"01".padStart(24, "0")}${"00".repeat(20)}`;
    const { address } = signer;
    await chain.devnet.client.setStorageAt({ address, index: "0x0", value: refuses });
    const signed = await Promise.all(Array.from({ length: 40 }, () => chain.sign({ signer })));
    const outcomes = await Promise.allSettled(signed.map((payment) => verify(payment)));
    const limited = outcomes.filter(({ status }) => status === "rejected");
    expect(limited).toHaveLength(10);
    for (const each of outcomes) {
      if (each.status === "fulfilled") expect(each.value.isValid).toBe(false);
    }
    expect(await verify(await chain.sign())).toMatchObject({ isValid: true });
  });

  test("pays by its key while the cache still lists its code", async () => {
    const signer = freshAccount();
    await chain.devnet.mint({ to: signer.address, amount: 5_000n });
    await delegate(signer, await chain.devnet.deploySmartAccount());
    expect(await verify(await forge(signer.address))).toMatchObject(refused);
    await delegate(signer, "0x0000000000000000000000000000000000000000");
    expect(await verify(await chain.sign({ signer }))).toMatchObject({ isValid: true });
  });

  test("an account whose code changes by losing its code is refused a payment that its code would have accepted", async () => {
    const signer = freshAccount();
    await chain.devnet.mint({ to: signer.address, amount: 5_000n });
    const wallet = await chain.devnet.deploySmartAccount({
      owner: chain.devnet.accounts.buyer.address,
    });
    await delegate(signer, wallet);
    const byCode = await signAsWallet(signer.address);
    await verify(byCode);
    await delegate(signer, "0x0000000000000000000000000000000000000000");
    expect(await verify(await signAsWallet(signer.address))).toMatchObject(refused);
  });

  test("an account whose code changes by gaining code is refused for ten seconds at most", async () => {
    const signer = freshAccount();
    await chain.devnet.mint({ to: signer.address, amount: 5_000n });
    expect(await verify(await forge(signer.address))).toMatchObject(refused);
    const { client } = chain.devnet;
    const wallet = await deployWallet();
    const bytecode = await client.getCode({ address: wallet });
    await client.setCode({ address: signer.address, bytecode: bytecode ?? "0x" });
    const owner = await client.getStorageAt({ address: wallet, slot: "0x0" });
    await client.setStorageAt({ address: signer.address, index: "0x0", value: owner ?? "0x" });
    passedMs = 10_000;
    expect(await verify(await signAsWallet(signer.address))).toMatchObject({ isValid: true });
  });
});
