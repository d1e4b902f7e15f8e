import { httpPost } from "@coinslot/chain";
import { smartAccount } from "@coinslot/devnet";
import { type Address, eip3009Abi, FacilitatorError, type Hex } from "@coinslot/protocol";
import { parseSignature } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSimulator } from "../simulation/simulator.ts";
import { createInterferingPool } from "../testing/interfering-pool.ts";
import type { TestPayment } from "../testing/payments.ts";
import { changeSignature } from "../testing/signature-forms.ts";
import {
  createPool,
  createTestVerifier,
  startingBalance,
  startVerifyingDevnet,
  type VerifyingDevnet,
} from "../testing/verifying-devnet.ts";
import { toVerifyResponse, type Verdict } from "./verdict.ts";

let chain: VerifyingDevnet;
beforeAll(async () => {
  chain = await startVerifyingDevnet();
});
afterAll(() => chain.stop());

async function verify(change: Partial<TestPayment> = {}, by = chain.verifier): Promise<Verdict> {
  const { paymentPayload, paymentRequirements } = await chain.sign(change);
  return by.verify(paymentPayload, paymentRequirements);
}

async function reasonFor(change: Partial<TestPayment>): Promise<string | undefined> {
  return toVerifyResponse(await verify(change)).invalidReason;
}

/** Signs a payment and has the token execute it. */
async function execute(change: Partial<TestPayment> = {}) {
  const payment = await chain.sign(change);
  const { from, to, value, validAfter, validBefore, nonce } = payment.authorization;
  const { r, s, yParity } = parseSignature(payment.signature);
  const { client, token, accounts } = chain.devnet;
  const hash = await client.writeContract({
    account: accounts.deployer.address,
    address: change.asset ?? token,
    abi: eip3009Abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, 27 + yParity, r, s],
  });
  await client.waitForTransactionReceipt({ hash });
  return payment;
}

/** A misbehaving token with a balance of the buyer, where it can be minted. */
async function tokenThat(behaviour: Parameters<typeof chain.devnet.deployMisbehavingToken>[0]) {
  const token = await chain.devnet.deployMisbehavingToken(behaviour);
  const to = chain.devnet.accounts.buyer.address;
  await chain.devnet.mint({ to, amount: startingBalance, token });
  return token;
}

describe("a valid payment", () => {
  test.each([1, 2] as const)(
    "is valid in version %i, with its balance and the block of that reading",
    async (x402Version) => {
      const verdict = await verify({ x402Version });
      expect(verdict).toMatchObject({
        isValid: true,
        payer: chain.devnet.accounts.buyer.address.toLowerCase(),
        payerHasCode: false,
        balance: {
          amount: startingBalance,
          blockNumber: await chain.devnet.client.getBlockNumber(),
        },
      });
    },
  );

  test("is valid with v as 0 or 1, and in the compact form", async () => {
    for (const form of ["parity", "compact"] as const) {
      const verdict = await verify({ changeSignature: (s) => changeSignature(s, form) });
      expect(verdict.isValid).toBe(true);
    }
  });

  test("shares one RPC request with all payments verified in the same turn", async () => {
    const payments = await Promise.all(Array.from({ length: 50 }, () => chain.sign()));
    const before = chain.requests.length;
    const verdicts = await Promise.all(
      payments.map(({ paymentPayload, paymentRequirements }) =>
        chain.verifier.verify(paymentPayload, paymentRequirements),
      ),
    );
    expect(verdicts.every(({ isValid }) => isValid)).toBe(true);
    expect(chain.requests.length - before).toBe(1);
  });
});

describe("a payer without code is refused", () => {
  test.each<[string, Partial<TestPayment>]>([
    ["another account's signature", { authorization: { from: `0x${"12".repeat(20)}` } }],
    ["a signature over another chain", { signedNetwork: "eip155:1" }],
    ["a signature over another token", { signedAsset: `0x${"12".repeat(20)}` }],
    ["a signature under another name", { signedDomain: { name: "USDT", version: "1" } }],
    ["a signature under another version", { signedDomain: { name: "USDT0", version: "2" } }],
    ["a high s", { changeSignature: (signature) => changeSignature(signature, "highS") }],
    ["a signature of no bytes", { changeSignature: () => "0x" }],
    ["a signature of 66 bytes", { changeSignature: (signature) => `${signature}00` }],
    ["an EIP-6492 wrapper", { changeSignature: (s) => `${s}${"6492".repeat(16)}` }],
  ])("a payer without code is refused with %s", async (_, change) => {
    expect(await reasonFor(change)).toBe("invalid_exact_evm_signature");
  });

  test("a payer without code is refused above its balance, and accepted up to it", async () => {
    expect(await reasonFor({ amount: startingBalance })).toBeUndefined();
    expect(await reasonFor({ amount: startingBalance + 1n })).toBe(
      "invalid_exact_evm_insufficient_balance",
    );
  });

  test("a payer without code is refused for a used authorization, and for a cancelled one", async () => {
    const signer = privateKeyToAccount(generatePrivateKey());
    const { mint, client, token, accounts } = chain.devnet;
    await mint({ to: signer.address, amount: 5_000n });
    const { paymentPayload, paymentRequirements } = await execute({ signer });
    expect(await chain.verifier.verify(paymentPayload, paymentRequirements)).toMatchObject({
      invalidReason: "invalid_exact_evm_nonce_already_used",
    });

    const cancelled = await chain.sign({ signer });
    const { nonce } = cancelled.authorization;
    const signature = await signer.signTypedData({
      domain: { name: "USDT0", version: "1", chainId: 9745, verifyingContract: token },
      types: {
        CancelAuthorization: [
          { name: "authorizer", type: "address" },
          { name: "nonce", type: "bytes32" },
        ],
      },
      primaryType: "CancelAuthorization",
      message: { authorizer: signer.address, nonce },
    });
    const { r, s, yParity } = parseSignature(signature);
    const hash = await client.writeContract({
      account: accounts.deployer.address,
      address: token,
      abi: eip3009Abi,
      functionName: "cancelAuthorization",
      args: [signer.address, nonce, 27 + yParity, r, s],
    });
    await client.waitForTransactionReceipt({ hash });
    expect(
      await chain.verifier.verify(cancelled.paymentPayload, cancelled.paymentRequirements),
    ).toMatchObject({ invalidReason: "invalid_exact_evm_nonce_already_used" });
  });

  test("a payer without code is refused for an authorization that starts after the chain's latest block", async () => {
    const { timestamp } = await chain.devnet.client.getBlock();
    expect(await reasonFor({ authorization: { validAfter: timestamp - 1n } })).toBeUndefined();
    expect(await reasonFor({ authorization: { validAfter: timestamp } })).toBe(
      "invalid_exact_evm_payload_authorization_valid_after",
    );
  });

  test("a payer without code is refused when the token blocks it, with the token's reason", async () => {
    const signer = privateKeyToAccount(generatePrivateKey());
    const { mint, client, token, accounts } = chain.devnet;
    await mint({ to: signer.address, amount: 5_000n });
    const hash = await client.writeContract({
      account: accounts.deployer.address,
      address: token,
      abi: [
        {
          type: "function",
          name: "setBlocked",
          stateMutability: "nonpayable",
          inputs: [{ type: "address" }, { type: "bool" }],
          outputs: [],
        },
      ],
      functionName: "setBlocked",
      args: [signer.address, true],
    });
    await client.waitForTransactionReceipt({ hash });
    expect(await verify({ signer })).toMatchObject({
      invalidReason: "invalid_exact_evm_transaction_simulation_failed",
      invalidMessage: expect.stringContaining("account is blacklisted"),
    });
  });
});

describe("a seller's mistake is reported as such:", () => {
  test("a domain with another name or version than the token's", async () => {
    expect(await reasonFor({ domain: { name: "USDT", version: "1" } })).toBe(
      "invalid_exact_evm_token_name_mismatch",
    );
    expect(await reasonFor({ domain: { name: "USDT0", version: "2" } })).toBe(
      "invalid_exact_evm_token_version_mismatch",
    );
    expect(await reasonFor({ domain: { name: "USDT", version: "2" } })).toBe(
      "invalid_exact_evm_token_name_mismatch",
    );
  });

  test("an asset without a contract, or without EIP-3009", async () => {
    expect(await reasonFor({ asset: `0x${"ab".repeat(20)}` })).toBe("asset_not_deployed_contract");
    expect(await reasonFor({ asset: chain.devnet.multicall3 })).toBe(
      "invalid_exact_evm_eip3009_not_supported",
    );
    // INVALID: old compilers ended unknown calls with it.
    const old = "0x000000000000000000000000000000000000001d";
    await chain.devnet.client.setCode({ address: old, bytecode: "0xfe" });
    expect(await reasonFor({ asset: old })).toBe("invalid_exact_evm_eip3009_not_supported");
  });

  test("many bad payments, diagnosed with one call about their token", async () => {
    const asset = await chain.devnet.deployToken({ name: "Other" });
    const bad = await Promise.all(Array.from({ length: 20 }, () => chain.sign({ asset })));
    const before = chain.requests.length;
    const verdicts = await Promise.all(
      bad.map((payment) =>
        chain.verifier.verify(payment.paymentPayload, payment.paymentRequirements),
      ),
    );
    for (const verdict of verdicts) {
      expect(verdict).toMatchObject({ invalidReason: "invalid_exact_evm_token_name_mismatch" });
    }
    expect(chain.requests.length - before).toBe(2);
  });
});

describe("a payer with code", () => {
  const accountThat = async (answer: "honest" | "refuses" | "reverts" | "burnsGas") => {
    const owner = chain.devnet.accounts.buyer.address;
    const account = await chain.devnet.deploySmartAccount({ owner, answer });
    await chain.devnet.mint({ to: account, amount: 5_000n });
    return account;
  };
  const paidBy = (from: Address) => ({ authorization: { from } });

  test("a payer with code that accepts the signature (EIP-1271) is valid", async () => {
    expect(await verify(paidBy(await accountThat("honest")))).toMatchObject({
      isValid: true,
      payerHasCode: true,
      balance: { amount: 5_000n },
    });
  });

  test.each(["refuses", "reverts", "burnsGas"] as const)(
    "a payer with code that %s is refused",
    async (answer) => {
      expect(await reasonFor(paidBy(await accountThat(answer)))).toBe(
        "invalid_exact_evm_signature",
      );
    },
  );

  test("gets its signature unchanged, and not normalised as a key's", async () => {
    const from = await accountThat("honest");
    const change = { ...paidBy(from), changeSignature: (s: Hex) => changeSignature(s, "parity") };
    expect(await reasonFor(change)).toBe("invalid_exact_evm_signature");
  });

  test("a payer with code that accepts the signature without the balance is refused for the balance", async () => {
    const from = await accountThat("honest");
    expect(await reasonFor({ ...paidBy(from), amount: 5_001n })).toBe(
      "invalid_exact_evm_insufficient_balance",
    );
  });

  test("a payer with code by delegation (EIP-7702) is called too, and its key alone does not count", async () => {
    const { client, mint, deploySmartAccount } = chain.devnet;
    const signer = privateKeyToAccount(generatePrivateKey());
    await mint({ to: signer.address, amount: 5_000n });
    const delegate = await deploySmartAccount();
    const authorization = await client.signAuthorization({
      account: signer,
      contractAddress: delegate,
    });
    const hash = await client.sendTransaction({
      to: client.account.address,
      authorizationList: [authorization],
    });
    await client.waitForTransactionReceipt({ hash });
    expect(await verify({ signer })).toMatchObject({ isValid: true, payerHasCode: true });

    const refuse = await client.writeContract({
      account: client.account.address,
      address: signer.address,
      abi: smartAccount.abi,
      functionName: "setAnswer",
      args: [1],
    });
    await client.waitForTransactionReceipt({ hash: refuse });
    expect(await reasonFor({ signer })).toBe("invalid_exact_evm_signature");
  });
});

describe("a misbehaving token", () => {
  test("a misbehaving token that returns normally for a used authorization does not make it valid", async () => {
    const asset = await tokenThat("ignoresReplay");
    const { paymentPayload, paymentRequirements } = await execute({ asset });
    expect(await chain.verifier.verify(paymentPayload, paymentRequirements)).toMatchObject({
      invalidReason: "invalid_exact_evm_nonce_already_used",
    });
  });

  test.each(["transfersLess", "takesFee"] as const)(
    "a misbehaving token that %s is refused: only the exact amount counts",
    async (behaviour) => {
      const asset = await tokenThat(behaviour);
      expect(await verify({ asset })).toMatchObject({
        invalidReason: "invalid_exact_evm_transaction_simulation_failed",
        invalidMessage: expect.stringContaining("exactly the amount"),
      });
    },
  );

  test.each(["burnsGas", "reverts"] as const)(
    "a misbehaving token that %s is refused, and its neighbours are unaffected",
    async (behaviour) => {
      const asset = await tokenThat(behaviour);
      const verdicts = await Promise.all([verify(), verify({ asset }), verify()]);
      expect(verdicts.map((verdict) => toVerifyResponse(verdict).invalidReason)).toEqual([
        undefined,
        "invalid_exact_evm_transaction_simulation_failed",
        undefined,
      ]);
    },
  );

  test("is not served where only others are configured", async () => {
    const asset = await tokenThat("honest");
    const { devnet, pool } = chain;
    const strict = createTestVerifier({ devnet, pool, assets: [devnet.token] });
    expect(await verify({}, strict)).toMatchObject({ isValid: true });
    expect(await verify({ asset }, strict)).toMatchObject({
      invalidReason: "invalid_payment_requirements",
    });
  });
});

describe("a payer with 1,000 payments that wait for a node", () => {
  test("is refused while they wait, and other payers are served", async () => {
    const { devnet } = chain;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const pool = createPool(devnet, async (request) => {
      await released;
      return httpPost(request);
    });
    const simulator = createSimulator({ rpc: pool, now: Date.now });
    const verifier = createTestVerifier({ devnet, pool, simulator });
    const { paymentPayload, paymentRequirements } = await chain.sign();
    const local = verifier.verifyLocally(paymentPayload, paymentRequirements);
    if (!local.isValid) throw new Error("The payment is not valid");
    const { payment } = local;
    const flood = Array.from({ length: 1_000 }, (_, index) => {
      const nonce: Hex = `0x${index.toString(16).padStart(64, "0")}`;
      const authorization = { ...payment.authorization, nonce };
      return simulator.simulate({ ...payment, authorization });
    });
    const refused = verifier.verify(paymentPayload, paymentRequirements);
    const signer = devnet.accounts.relayer;
    const others = verify({ signer }, verifier);
    release();
    await expect(refused).rejects.toMatchObject({ kind: "unavailable", retryAfterSeconds: 1 });
    expect(await others).toMatchObject({
      invalidReason: "invalid_exact_evm_insufficient_balance",
    });
    await Promise.all(flood);
    expect(await verifier.verify(paymentPayload, paymentRequirements)).toMatchObject({
      isValid: true,
    });
    pool.close();
  });
});

describe("a failing node", () => {
  test("makes a valid payment neither valid nor invalid: verify throws a retryable error", async () => {
    const { devnet } = chain;
    const pool = createPool(devnet, () => Promise.reject(new TypeError("fetch failed")));
    const attempt = verify({}, createTestVerifier({ devnet, pool }));
    await expect(attempt).rejects.toBeInstanceOf(FacilitatorError);
    await expect(attempt).rejects.toMatchObject({ kind: "unavailable", isRetryable: true });
    await expect(attempt).rejects.not.toMatchObject({
      message: expect.stringContaining(devnet.rpcUrl),
    });
    pool.close();
  });

  test("a failing node in the middle of a diagnosis throws too", async () => {
    const { devnet } = chain;
    const { pool } = createInterferingPool(devnet, ({ to }) => {
      if (to === undefined) return undefined;
      throw new TypeError("connection lost");
    });
    const attempt = verify({ amount: startingBalance + 1n }, createTestVerifier({ devnet, pool }));
    await expect(attempt).rejects.toMatchObject({ kind: "unavailable" });
    pool.close();
  });

  test("a failing node in the middle of a diagnosis does not invalidate a contract's signature", async () => {
    const { devnet } = chain;
    const from = await devnet.deploySmartAccount({ owner: devnet.accounts.buyer.address });
    const isAboutPayer = (to?: string) => to?.toLowerCase() === from.toLowerCase();
    const { pool } = createInterferingPool(devnet, ({ to }) =>
      isAboutPayer(to) ? { code: -32603, message: "internal error" } : undefined,
    );
    const attempt = verify({ authorization: { from } }, createTestVerifier({ devnet, pool }));
    await expect(attempt).rejects.toMatchObject({ kind: "unavailable" });
    pool.close();
  });

  test("a failing node that has lost a token which it had is at fault, and not the payment", async () => {
    const { client, deployToken, mint, accounts } = chain.devnet;
    const asset = await deployToken({ name: "Lost" });
    await mint({ to: accounts.buyer.address, amount: startingBalance, token: asset });
    const domain = { name: "Lost", version: "1" };
    expect(await verify({ asset, domain })).toMatchObject({ isValid: true });
    const bytecode = await client.getCode({ address: asset });
    await client.setCode({ address: asset, bytecode: "0x" });
    await expect(verify({ asset, domain })).rejects.toMatchObject({ kind: "unavailable" });
    await client.setCode({ address: asset, bytecode: bytecode ?? "0x" });
    expect(await verify({ asset, domain })).toMatchObject({ isValid: true });
  });

  describe("a node that refuses calls without a contract", () => {
    const refusesDeployless = () =>
      createInterferingPool(chain.devnet, ({ to }) =>
        to === undefined ? { code: -32602, message: "to is missing" } : undefined,
      ).pool;

    test("gets other calls, which verify payments", async () => {
      const pool = refusesDeployless();
      const verifier = createTestVerifier({ devnet: chain.devnet, pool });
      expect(await verify({}, verifier)).toMatchObject({ isValid: true, payerHasCode: false });
      expect(await verify({ amount: startingBalance + 1n }, verifier)).toMatchObject({
        invalidReason: "invalid_exact_evm_insufficient_balance",
      });
      pool.close();
    });

    test("passes no transfer for an asset that answers any call", async () => {
      const pool = refusesDeployless();
      const verifier = createTestVerifier({ devnet: chain.devnet, pool });
      const noToken = `0x${"ab".repeat(20)}` as const;
      expect(await verify({ asset: noToken }, verifier)).toMatchObject({
        invalidReason: "asset_not_deployed_contract",
      });
      // STOP: any call succeeds without a return value, as in a wrapped coin.
      const agreeable = "0x00000000000000000000000000000000000a94ee";
      await chain.devnet.client.setCode({ address: agreeable, bytecode: "0x00" });
      expect(await verify({ asset: agreeable }, verifier)).toMatchObject({
        invalidReason: "invalid_exact_evm_eip3009_not_supported",
      });
      pool.close();
    });
  });
});
