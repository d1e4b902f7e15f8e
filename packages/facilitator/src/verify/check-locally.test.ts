import { plasmaUsdt0 } from "@coinslot/protocol";
import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { silentLogger } from "../logger.ts";
import { signPayment, type TestPayment } from "../testing/payments.ts";
import { changeSignature } from "../testing/signature-forms.ts";
import { type LocalVerdict, toVerifyResponse } from "./verdict.ts";
import { createVerifier, type VerifierNetwork } from "./verifier.ts";

const network = "eip155:9745";
const asset = plasmaUsdt0.address;
const payTo = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const signer = privateKeyToAccount(`0x${"11".repeat(32)}`);
const nowMs = 1_800_000_000_000;
const now = BigInt(nowMs / 1000);

/** Sends no request: its node would not answer. */
const unreachable: VerifierNetwork = {
  rpc: {
    chainId: 9745,
    request: () => Promise.reject(new Error("asked the chain")),
    requestMany: () => Promise.reject(new Error("asked the chain")),
  },
  simulator: {
    simulate: () => Promise.reject(new Error("asked the chain")),
    simulateAll: () => Promise.reject(new Error("asked the chain")),
    simulatePlanned: () => Promise.reject(new Error("asked the chain")),
    countWaiting: () => 0,
  },
};

function verifierWith(members: Partial<VerifierNetwork> = {}) {
  const networks = new Map([[network, { ...unreachable, ...members }]] as const);
  return createVerifier({ networks, now: () => nowMs, logger: silentLogger });
}

const verifier = verifierWith();

function sign({ authorization, ...change }: Partial<TestPayment> = {}) {
  return signPayment({
    network,
    asset,
    signer,
    payTo,
    authorization: { validBefore: now + 300n, ...authorization },
    ...change,
  });
}

async function reasonFor(change: Partial<TestPayment>, by = verifier): Promise<string | undefined> {
  const { paymentPayload, paymentRequirements } = await sign(change);
  return toVerifyResponse(by.verifyLocally(paymentPayload, paymentRequirements)).invalidReason;
}

/** Of an otherwise valid payment. */
function isSigned(verdict: LocalVerdict): boolean {
  if (!verdict.isValid) throw new Error(verdict.invalidReason);
  return verdict.isSignedByPayer();
}

describe("a valid payment", () => {
  test.each([1, 2] as const)(
    "passes the local checks in version %i, as signed by its payer",
    async (x402Version) => {
      const { paymentPayload, paymentRequirements } = await sign({ x402Version });
      const verdict = verifier.verifyLocally(paymentPayload, paymentRequirements);
      expect(isSigned(verdict)).toBe(true);
      expect(toVerifyResponse(verdict)).toEqual({
        isValid: true,
        payer: signer.address.toLowerCase(),
      });
    },
  );

  test("passes the local checks with v as 0 or 1, compact, and in other letter case", async () => {
    for (const form of ["parity", "compact"] as const) {
      const payment = await sign({
        changeSignature: (signature) => changeSignature(signature, form),
      });
      expect(
        isSigned(verifier.verifyLocally(payment.paymentPayload, payment.paymentRequirements)),
      ).toBe(true);
    }
    const { paymentPayload, paymentRequirements } = await sign();
    const upper = (hex: string) => `0x${hex.slice(2).toUpperCase()}`;
    const { authorization, signature } = paymentPayload.payload;
    const loud = {
      ...paymentPayload,
      payload: {
        signature: upper(signature),
        authorization: {
          ...authorization,
          from: upper(authorization.from),
          to: upper(authorization.to),
          nonce: upper(authorization.nonce),
        },
      },
    };
    const verdict = verifier.verifyLocally(loud, paymentRequirements);
    expect(isSigned(verdict)).toBe(true);
    expect(verdict).toMatchObject({
      ...verifier.verifyLocally(paymentPayload, paymentRequirements),
      isSignedByPayer: expect.any(Function),
    });
  });

  test("may exceed the price in version 1, and not in version 2", async () => {
    const more = { authorization: { value: 1_001n } };
    expect(await reasonFor({ ...more, x402Version: 1 })).toBeUndefined();
    expect(await reasonFor({ ...more, x402Version: 2 })).toBe(
      "invalid_exact_evm_payload_authorization_value_mismatch",
    );
  });
});

const recipient = "invalid_exact_evm_recipient_mismatch";
const value = "invalid_exact_evm_payload_authorization_value_mismatch";
const before = "invalid_exact_evm_payload_authorization_valid_before";
const after = "invalid_exact_evm_payload_authorization_valid_after";
const stranger = "0x00000000000000000000000000000000000000aa";
const zero = "0x0000000000000000000000000000000000000000";

describe("a payment is decided without an RPC call", () => {
  test.each<[string, Partial<TestPayment>, string]>([
    ["another scheme", { requirements: { scheme: "upto" } }, "unsupported_scheme"],
    [
      "permit2",
      { requirements: { extra: { assetTransferMethod: "permit2" } } },
      "unsupported_scheme",
    ],
    ["a network not served", { network: "eip155:1" }, "invalid_network"],
    [
      "a network not served, before a missing domain",
      { network: "eip155:1", requirements: { extra: {} } },
      "invalid_network",
    ],
    [
      "no domain",
      { requirements: { extra: { name: "USDT0" } } },
      "invalid_exact_evm_missing_eip712_domain",
    ],
    ["a zero payTo", { payTo: zero }, "invalid_payment_requirements"],
    ["an amount of zero", { amount: 0n }, "invalid_payment_requirements"],
    ["another recipient", { authorization: { to: stranger } }, recipient],
    ["a payer that pays itself", { payTo: signer.address }, recipient],
    ["one too little", { authorization: { value: 999n } }, value],
    ["one too little in version 1", { authorization: { value: 999n }, x402Version: 1 }, value],
    ["one too much in version 2", { authorization: { value: 1_001n } }, value],
    ["validBefore 0", { authorization: { validBefore: 0n } }, before],
    ["validBefore now", { authorization: { validBefore: now } }, before],
    ["validBefore in 5 seconds", { authorization: { validBefore: now + 5n } }, before],
    ["validBefore in 6 seconds", { authorization: { validBefore: now + 6n } }, before],
    ["validBefore in more than a day", { authorization: { validBefore: now + 86_402n } }, before],
    [
      "validBefore at the largest uint256",
      { authorization: { validBefore: 2n ** 256n - 1n } },
      before,
    ],
    ["validAfter in a second", { authorization: { validAfter: now + 1n } }, after],
    ["validAfter never", { authorization: { validAfter: 2n ** 256n - 1n } }, after],
    [
      "an EIP-6492 wrapper",
      { changeSignature: (signature) => `${signature}${"6492".repeat(16)}` },
      "invalid_exact_evm_signature",
    ],
  ])("for %s", async (_, change, reason) => {
    expect(await reasonFor(change)).toBe(reason);
  });

  test("a payment is decided without an RPC call for a validBefore in 7 seconds and in a day, which are accepted", async () => {
    for (const validBefore of [now + 7n, now + 86_400n]) {
      expect(await reasonFor({ authorization: { validBefore } })).toBeUndefined();
    }
  });

  test("a payment is decided without an RPC call for a later validBefore, with a reason that names it", async () => {
    const authorization = { validBefore: now + 86_401n };
    const { paymentPayload, paymentRequirements } = await sign({ authorization });
    expect(verifier.verifyLocally(paymentPayload, paymentRequirements)).toMatchObject({
      invalidReason: before,
      invalidMessage: expect.stringContaining("for longer than a day"),
    });
  });

  test("a payment is decided without an RPC call for an authorization that expires before the handler, or within two slow blocks", async () => {
    const { paymentPayload, paymentRequirements } = await sign({
      authorization: { validBefore: now + 60n },
    });
    const slow = verifierWith({ blockTimeSeconds: 30 });
    const options = { handlerTimeoutSeconds: 54 };
    expect(verifier.verifyLocally(paymentPayload, paymentRequirements, options)).toMatchObject({
      invalidReason: before,
    });
    expect(slow.verifyLocally(paymentPayload, paymentRequirements)).toMatchObject({
      invalidReason: before,
    });
    expect(
      verifier.verifyLocally(paymentPayload, paymentRequirements, { handlerTimeoutSeconds: 53 }),
    ).toMatchObject({ isValid: true });
  });

  test("a payment is decided without an RPC call for a network that differs between payload and requirements", async () => {
    const { paymentPayload } = await sign({ network: "eip155:1" });
    const { paymentRequirements } = await sign();
    expect(verifier.verifyLocally(paymentPayload, paymentRequirements)).toMatchObject({
      invalidReason: "invalid_exact_evm_network_mismatch",
    });
  });

  test("a payment is decided without an RPC call for an asset that is not configured, where some are", async () => {
    const configured = verifierWith({ assets: [asset] });
    expect(await reasonFor({}, configured)).toBeUndefined();
    expect(await reasonFor({ asset: stranger }, configured)).toBe("invalid_payment_requirements");
  });

  test("a payment is decided without an RPC call for an unknown version, and for a malformed message", async () => {
    const { paymentPayload, paymentRequirements } = await sign();
    expect(
      verifier.verifyLocally({ ...paymentPayload, x402Version: 3 }, paymentRequirements),
    ).toMatchObject({ invalidReason: "invalid_x402_version" });
    expect(verifier.verifyLocally({ x402Version: 2 }, paymentRequirements)).toMatchObject({
      invalidReason: "invalid_payload",
    });
    expect(verifier.verifyLocally(paymentPayload, { scheme: "exact" })).toMatchObject({
      invalidReason: "invalid_payment_requirements",
    });
  });

  test.each(["", "1e3", "0x10", "-1", "01", "1.5", `${2n ** 256n}`, 1_000, null])(
    "a payment is decided without an RPC call for an amount, value or time of %j",
    async (bad) => {
      const { paymentPayload, paymentRequirements } = await sign();
      const withMember = (member: string) => ({
        ...paymentPayload,
        payload: {
          ...paymentPayload.payload,
          authorization: { ...paymentPayload.payload.authorization, [member]: bad },
        },
      });
      for (const member of ["value", "validAfter", "validBefore"]) {
        expect(verifier.verifyLocally(withMember(member), paymentRequirements)).toMatchObject({
          isValid: false,
          invalidReason: "invalid_payload",
        });
      }
      expect(
        verifier.verifyLocally(paymentPayload, { ...paymentRequirements, amount: bad }),
      ).toMatchObject({ isValid: false, invalidReason: "invalid_payment_requirements" });
    },
  );

  test("a payment is decided without an RPC call for an address with a wrong checksum", async () => {
    const { paymentPayload, paymentRequirements } = await sign();
    const mistyped = { ...paymentRequirements, payTo: payTo.replace("C44C", "c44C") };
    expect(verifier.verifyLocally(paymentPayload, mistyped)).toMatchObject({
      invalidReason: "invalid_payment_requirements",
    });
  });
});

describe("a signature of another key than the payer's is left to the chain", () => {
  const other = privateKeyToAccount(`0x${"22".repeat(32)}`);
  test.each<[string, Partial<TestPayment>]>([
    ["of another account", { authorization: { from: other.address } }],
    ["over another chain", { signedNetwork: "eip155:1" }],
    ["over another token", { signedAsset: stranger }],
    ["under another name", { signedDomain: { name: "USDT", version: "1" } }],
    ["under another version", { signedDomain: { name: "USDT0", version: "2" } }],
    ["with a high s", { changeSignature: (signature) => changeSignature(signature, "highS") }],
    ["of no bytes", { changeSignature: () => "0x" }],
    ["of 66 bytes", { changeSignature: (signature) => `${signature}00` }],
    ["of 4096 bytes", { changeSignature: () => `0x${"ab".repeat(4096)}` }],
  ])("a signature %s is left to the chain", async (_, change) => {
    const { paymentPayload, paymentRequirements } = await sign(change);
    expect(isSigned(verifier.verifyLocally(paymentPayload, paymentRequirements))).toBe(false);
  });
});

test("the local checks neither throw nor pass for any arbitrary input", async () => {
  const { paymentPayload, paymentRequirements } = await sign();
  const anything = fc.oneof(fc.anything(), fc.jsonValue(), fc.constant(paymentPayload));
  const anyRequirements = fc.oneof(fc.anything(), fc.jsonValue());
  fc.assert(
    fc.property(anything, anyRequirements, (payload, requirements) => {
      expect(verifier.verifyLocally(payload, requirements).isValid).toBe(false);
    }),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.keys(paymentPayload.payload.authorization)),
      fc.anything(),
      (member, bad) => {
        const authorization = { ...paymentPayload.payload.authorization, [member]: bad };
        const payload = {
          ...paymentPayload,
          payload: { ...paymentPayload.payload, authorization },
        };
        const verdict = verifier.verifyLocally(payload, paymentRequirements);
        expect(verdict.isValid && verdict.isSignedByPayer()).toBe(false);
      },
    ),
  );
});
