import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";
import {
  type Authorization,
  type Challenge,
  challengeNonce,
  type ExactEvmPayload,
  encodeCredential,
  encodePaymentPayload,
  formatAuthorization,
  formatSource,
  headerName,
  type PaymentRequirements,
  parseChallenges,
  transferTypedData,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import {
  type PlannedPurchase,
  type Purchase,
  price,
  tokenDomain,
  validitySeconds,
} from "./purchase.ts";

const retryMs = 200;
const patienceMs = 20_000;

/**
 * Signs a purchase. A buyer by x402 knows the price, so it needs no seller. One by MPP first asks a
 * living seller for a challenge, until it has one.
 */
export async function signPurchase(options: {
  devnet: Devnet;
  planned: PlannedPurchase;
  /** Resolves to the URL of a living seller, once there is one. */
  sellerUrl: () => Promise<string>;
  /** Aborts when no challenge can come any more. */
  signal: AbortSignal;
}): Promise<Purchase> {
  const { devnet, planned } = options;
  const { payer, nonce, validBefore, key } = planned;
  const challenge = planned.wire === "mpp" ? await fetchChallenge(options) : undefined;
  const authorization: Authorization = {
    from: payer.address,
    to: devnet.accounts.seller.address,
    value: price,
    validAfter: 0n,
    validBefore: challenge === undefined ? validBefore : expiryOf(challenge),
    nonce: challenge === undefined ? nonce : challengeNonce(challenge),
  };
  const signature = await payer.signTypedData(
    transferTypedData({
      authorization,
      network: devnet.network,
      asset: devnet.token,
      domain: tokenDomain,
    }),
  );
  const payload = { signature, authorization: formatAuthorization(authorization) };
  const requirements = requirementsOf(devnet, planned);
  const paid = writePayment({ planned, challenge, payload, requirements });
  return {
    ...planned,
    authorization,
    signature,
    challenge,
    headers: key === undefined ? paid : { ...paid, [headerName.idempotencyKey]: key },
    strangerHeaders: writeVersion2(payload, requirements),
  };
}

/** The seller's price. */
function requirementsOf(devnet: Devnet, { flow }: PlannedPurchase): PaymentRequirements {
  const extra = { ...tokenDomain, decimals: 6 };
  return {
    scheme: "exact",
    network: devnet.network,
    amount: price.toString(),
    asset: devnet.token,
    payTo: devnet.accounts.seller.address,
    maxTimeoutSeconds: validitySeconds,
    extra: flow === "upfront" ? { ...extra, paymentFlow: "upfront" } : extra,
  };
}

function writePayment(options: {
  planned: PlannedPurchase;
  challenge: Challenge | undefined;
  payload: ExactEvmPayload;
  requirements: PaymentRequirements;
}): Record<string, string> {
  const { planned, challenge, payload, requirements } = options;
  const { scheme, network } = requirements;
  if (challenge !== undefined) {
    const source = formatSource(network, planned.payer.address);
    const credential = { challenge, payload: writeAuthorizationPayload(payload), source };
    return { [headerName.authorization]: encodeCredential(credential) };
  }
  return planned.wire === "x402v1"
    ? { [headerName.payment]: encodePaymentPayload({ x402Version: 1, scheme, network, payload }) }
    : writeVersion2(payload, requirements);
}

function writeVersion2(
  payload: ExactEvmPayload,
  accepted: PaymentRequirements,
): Record<string, string> {
  const value = encodePaymentPayload({ x402Version: 2, payload, accepted });
  return { [headerName.paymentSignature]: value };
}

/**
 * The challenge of an unpaid answer, which has the offers of both versions of x402 beside it.
 *
 * @throws Error where an answer lacks an offer, or none comes
 */
async function fetchChallenge({
  planned: { number, path },
  sellerUrl,
  signal,
}: Parameters<typeof signPurchase>[0]): Promise<Challenge> {
  for (;;) {
    if (signal.aborted) throw new Error(`Purchase ${number} never got a challenge`);
    const answer = await fetchUnpaid(`${await sellerUrl()}${path}`);
    if (answer === undefined) {
      await sleep(retryMs);
      continue;
    }
    const [read] = parseChallenges(answer.headers.get(headerName.authenticate) ?? "");
    const hasX402 =
      answer.headers.has(headerName.paymentRequired) && answer.text.startsWith('{"x402Version":1');
    if (read?.ok !== true || !hasX402) {
      throw new Error(`The unpaid answer to purchase ${number} lacks an offer: ${answer.text}`);
    }
    return read.challenge;
  }
}

/** The 402 answer to a request without a payment; `undefined` where the seller fails or dies. */
async function fetchUnpaid(url: string): Promise<{ headers: Headers; text: string } | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(patienceMs) });
    const text = await response.text();
    return response.status === 402 ? { headers: response.headers, text } : undefined;
  } catch {
    return undefined;
  }
}

function expiryOf({ expires }: Challenge): bigint {
  return BigInt(Math.floor(Date.parse(expires ?? "") / 1000));
}
