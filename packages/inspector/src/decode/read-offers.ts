import { createHash } from "node:crypto";
import {
  type Challenge,
  DecodeError,
  decodeChargeRequest,
  decodeOpaque,
  decodePaymentRequired,
  evmCharge,
  findKnownToken,
  formatMoney,
  headerName,
  isNetwork,
  networkOf,
  type Offer,
  type PaymentRequirements,
  parseChallenges,
  parsePaymentRequiredV1,
  paymentRequirementsSchema,
  symbolOf,
} from "@coinslot/protocol";
import type { DecodedHeader, OfferedWay } from "../cycles/cycle.ts";
import { headerOf } from "../proxy/end-to-end-headers.ts";
import type { Header } from "../proxy/observer.ts";
import { decodeForDisplay, type Json } from "./header-value.ts";

/** The ways to pay that an answer offers, and the messages that name them. */
export interface ReadOffers {
  ways: OfferedWay[];
  decoded: DecodedHeader[];
}

/** Bound on the challenges that are read of one answer. */
const maxChallenges = 32;

/** Reads the offers in an answer's headers: version 2 of x402, and MPP. */
export function readOffersOfHead(headers: readonly Header[]): ReadOffers {
  const required = headerOf(headers, headerName.paymentRequired);
  const challenges = headerOf(headers, headerName.authenticate);
  const offers = [
    ...(required === undefined ? [] : [readRequired(required)]),
    ...(challenges === undefined ? [] : readChallenges(challenges)),
  ];
  return join(offers);
}

/** Reads the offer in an answer's JSON body: version 1 of x402. */
export function readOfferOfBody(body: Json | undefined): ReadOffers {
  const isOffer = typeof body === "object" && body !== null && "x402Version" in body;
  if (!isOffer) return { ways: [], decoded: [] };
  const decoded = { header: "body", side: "answer", wire: "x402 v1" } as const;
  const read = attempt(() => parsePaymentRequiredV1(body));
  if (!read.ok) return { ways: [], decoded: [{ ...decoded, value: body, fault: read.fault }] };
  const ways = waysOf(read.value, "x402 v1");
  return { ways, decoded: [{ ...decoded, value: body, ...faultOfEntries(body, ways.length) }] };
}

function readRequired(value: string): ReadOffers {
  const { paymentRequired: header } = headerName;
  const shown = decodeForDisplay(value);
  const decoded = { header, side: "answer", wire: "x402 v2", ...shownAs(shown) } as const;
  const read = attempt(() => decodePaymentRequired(value));
  if (!read.ok) return { ways: [], decoded: [{ ...decoded, fault: read.fault }] };
  const ways = waysOf(read.value, "x402 v2");
  return { ways, decoded: [{ ...decoded, ...faultOfEntries(shown, ways.length) }] };
}

function waysOf({ accepts }: Offer, wire: "x402 v1" | "x402 v2"): OfferedWay[] {
  return accepts.map(({ requirements }) => {
    const { scheme, network, asset, payTo, amount, maxTimeoutSeconds, extra } = requirements;
    const { name, version } = extra ?? {};
    const price = formatPrice(requirements);
    const isDomain = typeof name === "string" && typeof version === "string";
    const way = { wire, scheme, network, asset, payTo, amount, price, maxTimeoutSeconds };
    return isDomain ? { ...way, domain: { name, version } } : way;
  });
}

/** Entries of `accepts` that no client can read, with the member that is wrong. */
function faultOfEntries(message: Json | undefined, readable: number): { fault?: string } {
  const isObject = typeof message === "object" && message !== null && !Array.isArray(message);
  const accepts = isObject ? message.accepts : undefined;
  if (!Array.isArray(accepts) || accepts.length === readable) return {};
  const missing = `${accepts.length - readable} of ${accepts.length} entries cannot be read`;
  for (const [index, entry] of accepts.entries()) {
    const { error } = paymentRequirementsSchema.safeParse(entry);
    const issue = error?.issues[0];
    if (isObject && message.x402Version === 2 && issue !== undefined) {
      const path = ["accepts", index, ...issue.path].map(String).join(".");
      return { fault: `${missing}: ${path}: ${issue.message}` };
    }
  }
  return { fault: missing };
}

function readChallenges(header: string): ReadOffers[] {
  const name = headerName.authenticate;
  return parseChallenges(header)
    .slice(0, maxChallenges)
    .map((read): ReadOffers => {
      const decoded = { header: name, side: "answer", wire: "MPP" } as const;
      if (!read.ok) return { ways: [], decoded: [{ ...decoded, fault: read.error.message }] };
      return readChallenge(read.challenge, decoded);
    });
}

function readChallenge(
  challenge: Challenge,
  decoded: Pick<DecodedHeader, "header" | "side" | "wire">,
): ReadOffers {
  const value = describeChallenge(challenge);
  const { method, intent, id, realm, expires } = challenge;
  if (method !== evmCharge.method || intent !== evmCharge.intent) {
    return { ways: [], decoded: [{ ...decoded, value }] };
  }
  const read = attempt(() => decodeChargeRequest(challenge.request));
  if (!read.ok) return { ways: [], decoded: [{ ...decoded, value, fault: read.fault }] };
  const { amount, currency: asset, recipient: payTo, methodDetails } = read.value;
  const network = networkOf(methodDetails.chainId);
  const types = methodDetails.credentialTypes ?? [];
  const fault = types.includes("authorization")
    ? {}
    : { fault: "methodDetails.credentialTypes lacks authorization: EIP-3009 cannot pay it" };
  const token = findKnownToken(network, asset);
  const way: OfferedWay = {
    wire: "MPP",
    scheme: `${method}/${intent}`,
    network,
    asset,
    payTo,
    amount,
    price: formatPrice({ network, asset, amount, extra: { decimals: methodDetails.decimals } }),
    challenge: {
      id,
      realm,
      seal: sealOf(challenge),
      ...(expires === undefined ? {} : { expires }),
    },
    ...(token === undefined ? {} : { domain: { name: token.name, version: token.version } }),
  };
  return { ways: [way], decoded: [{ ...decoded, value, ...fault }] };
}

/** Hash of the members that a credential repeats as they came. */
export function sealOf({ description: _text, header: _name, ...members }: Challenge): string {
  const pairs = Object.entries(members).filter(([, value]) => value !== undefined);
  const sorted = pairs.sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}

/** A challenge with its two encoded members decoded. */
export function describeChallenge(challenge: Challenge): Json {
  const opaque = attempt(() => decodeOpaque(challenge.opaque ?? ""));
  const shown: Record<string, Json> = {};
  for (const [name, value] of Object.entries(challenge)) {
    if (value !== undefined) shown[name] = value;
  }
  shown.request = decodeForDisplay(challenge.request) ?? challenge.request;
  if (opaque.ok) shown.opaque = opaque.value;
  return shown;
}

/** An amount for people; of a token that is in no table, the raw one. */
export function formatPrice(
  terms: Pick<PaymentRequirements, "amount" | "asset"> & {
    network: string;
    extra?: Record<string, unknown> | undefined;
  },
): string {
  const { network, asset, amount, extra } = terms;
  const known = isNetwork(network) ? findKnownToken(network, asset) : undefined;
  if (known !== undefined) {
    return `${formatMoney(BigInt(amount), known.decimals)} ${symbolOf(known)}`;
  }
  const decimals = extra?.decimals;
  const name = typeof extra?.name === "string" ? extra.name.slice(0, 24) : "of its token";
  const isCount = typeof decimals === "number" && Number.isInteger(decimals) && decimals >= 0;
  if (!isCount || decimals > 77) return `${amount} units`;
  return `${formatMoney(BigInt(amount), decimals)} ${name}`;
}

function join(offers: readonly ReadOffers[]): ReadOffers {
  return {
    ways: offers.flatMap(({ ways }) => ways),
    decoded: offers.flatMap(({ decoded }) => decoded),
  };
}

function shownAs(value: Json | undefined): { value?: Json } {
  return value === undefined ? {} : { value };
}

/** Runs a decoder; its error becomes a text. */
export function attempt<Value>(
  decode: () => Value,
): { ok: true; value: Value } | { ok: false; fault: string } {
  try {
    return { ok: true, value: decode() };
  } catch (error) {
    if (error instanceof DecodeError) return { ok: false, fault: error.message };
    throw error;
  }
}
