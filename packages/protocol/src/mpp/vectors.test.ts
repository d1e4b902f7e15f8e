import { readFileSync } from "node:fs";
import { Challenge as MppxChallenge, Credential as MppxCredential } from "mppx";
import { recoverTypedDataAddress } from "viem";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { addressSchema, bytes32Schema } from "../money/address.ts";
import { networkSchema } from "../money/network.ts";
import { parseAuthorization } from "../x402/authorization.ts";
import { DecodeError } from "../x402/decode-error.ts";
import { transferTypedData } from "../x402/eip3009.ts";
import { encodeCanonicalJson } from "./base64url-json.ts";
import { challengeSchema } from "./challenge.ts";
import { formatChallenge, parseChallenges } from "./challenge-header.ts";
import { challengeNonce } from "./challenge-nonce.ts";
import { decodeChargeRequest, encodeChargeRequest, isCanonicalRequest } from "./charge-request.ts";
import {
  decodeCredential,
  encodeCredential,
  isSourceOf,
  readAuthorizationPayload,
} from "./credential.ts";
import { decodePaymentReceipt, encodePaymentReceipt } from "./payment-receipt.ts";

const challengeVector = challengeSchema
  .omit({ request: true, method: true, intent: true, opaque: true })
  .extend({
    name: z.string(),
    requestEncoded: z.string(),
    opaqueEncoded: z.string().optional(),
    wwwAuthenticate: z.string(),
    nonce: bytes32Schema,
    domain: z.object({ name: z.string(), version: z.string() }).optional(),
    authorization: z.string().optional(),
    ledgerIdentity: z
      .object({ network: networkSchema, asset: addressSchema, payer: addressSchema })
      .optional(),
  });

const vectors = z
  .object({
    secret: z.string(),
    jcs: z.array(z.object({ value: z.unknown(), jcs: z.string(), base64url: z.string() })),
    challenges: z.array(challengeVector),
    receipt: z.object({ decoded: z.unknown(), header: z.string() }),
    credentials: z.array(
      z.object({ name: z.string(), authorization: z.string(), problem: z.string().nullable() }),
    ),
  })
  .parse(JSON.parse(readFileSync(new URL("../testing/mpp-vectors.json", import.meta.url), "utf8")));

describe("canonical JSON", () => {
  it.each(vectors.jcs)("encodes $jcs", ({ value, base64url }) => {
    expect(encodeCanonicalJson(value)).toBe(base64url);
  });
});

describe.each(vectors.challenges)("the challenge: $name", (vector) => {
  const { requestEncoded, opaqueEncoded, wwwAuthenticate, nonce } = vector;
  const challenge = challengeSchema.parse({
    ...vector,
    method: "evm",
    intent: "charge",
    request: requestEncoded,
    opaque: opaqueEncoded,
  });

  it("is written and read as the reference does", () => {
    expect(formatChallenge(challenge)).toBe(wwwAuthenticate);
    expect(parseChallenges(wwwAuthenticate)).toEqual([{ ok: true, challenge }]);
    const theirs = MppxChallenge.deserialize(formatChallenge(challenge));
    expect(MppxChallenge.verify(theirs, { secretKey: vectors.secret })).toBe(true);
  });

  it("has the nonce of its id and realm", () => {
    expect(challengeNonce(challenge)).toBe(nonce);
  });

  it("has a canonical request", () => {
    expect(encodeChargeRequest(decodeChargeRequest(requestEncoded))).toBe(requestEncoded);
    expect(isCanonicalRequest(requestEncoded)).toBe(true);
  });
});

const paid = vectors.challenges.flatMap(({ authorization, domain, ledgerIdentity, ...rest }) =>
  authorization && domain && ledgerIdentity
    ? [{ ...rest, authorization, domain, ledgerIdentity }]
    : [],
);

describe.each(paid)("the credential for: $name", (vector) => {
  const { authorization: header, domain, ledgerIdentity, nonce } = vector;
  const { network, asset, payer } = ledgerIdentity;
  const credential = decodeCredential(header);
  const payload = readAuthorizationPayload(credential);

  it("is signed by its payer, with the challenge's nonce", async () => {
    if (payload === undefined) throw new Error("No authorization");
    const authorization = parseAuthorization(payload.authorization);
    expect(authorization.nonce).toBe(nonce);
    const data = transferTypedData({ authorization, network, asset, domain });
    const { signature } = payload;
    const signer = await recoverTypedDataAddress({ ...data, signature });
    expect(signer.toLowerCase()).toBe(payer);
    expect(isSourceOf(credential.source ?? "", network, payer)).toBe(true);
  });

  it("is written in a form that the reference reads as its own", () => {
    expect(MppxCredential.deserialize(encodeCredential(credential))).toEqual(
      MppxCredential.deserialize(header),
    );
  });
});

describe("a tampered credential", () => {
  it.each(vectors.credentials)("$name: is malformed, or read", ({ authorization, problem }) => {
    const read = () => decodeCredential(authorization);
    if (problem?.endsWith("/malformed-credential")) expect(read).toThrow(DecodeError);
    else expect(read).not.toThrow();
  });

  it("a tampered credential of another type has no authorization", () => {
    const of = (name: string) => {
      const found = vectors.credentials.find((each) => each.name.startsWith(name));
      return readAuthorizationPayload(decodeCredential(found?.authorization ?? ""));
    };
    expect(of("payload type unknown")).toBeUndefined();
    expect(of("value lowered")).toBeDefined();
  });

  it("a tampered credential with a request that is not canonical can be recognised", () => {
    const found = vectors.credentials.find(({ name }) => name.startsWith("request not canonical"));
    const { challenge } = decodeCredential(found?.authorization ?? "");
    expect(isCanonicalRequest(challenge.request)).toBe(false);
  });
});

describe("the receipt", () => {
  it("is read, and read again after it was written", () => {
    const receipt = decodePaymentReceipt(vectors.receipt.header);
    expect(receipt).toEqual(vectors.receipt.decoded);
    expect(decodePaymentReceipt(encodePaymentReceipt(receipt))).toEqual(receipt);
  });

  it("is written canonically, with and without the members that may be absent", () => {
    const receipt = decodePaymentReceipt(vectors.receipt.header);
    const { chainId: _chainId, challengeId: _challengeId, externalId: _id, ...least } = receipt;
    for (const each of [receipt, least, { ...receipt, externalId: 'order "1" \u00e9' }])
      expect(encodePaymentReceipt(each)).toBe(encodeCanonicalJson(each));
  });
});
