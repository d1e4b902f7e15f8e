import {
  type Challenge,
  decodeChargeRequest,
  decodeCredential,
  decodePaymentV1,
  decodePaymentV2,
  type ExactEvmPayload,
  headerName,
  isPaymentScheme,
  networkOf,
  parseNetwork,
  paymentIdentifier,
  readAuthorizationPayload,
} from "@coinslot/protocol";
import type { DecodedHeader, Wire } from "../cycles/cycle.ts";
import { headerOf } from "../proxy/end-to-end-headers.ts";
import type { Header } from "../proxy/observer.ts";
import { decodeForDisplay, type Json } from "./header-value.ts";
import { attempt, describeChallenge } from "./read-offers.ts";

/** Terms that a payment names beside its authorization. */
export interface NamedTerms {
  scheme?: string;
  network?: string;
  asset?: string;
  payTo?: string;
  amount?: string;
  extra?: Record<string, unknown>;
}

/** A payment as a request presents it. It holds the signature: it is never stored. */
export interface PresentedPayment {
  wire: Wire;
  /** `undefined` where the header cannot be read; `decoded` says why. */
  paid: ExactEvmPayload | undefined;
  terms: NamedTerms;
  challenge: Challenge | undefined;
  source: string | undefined;
  decoded: DecodedHeader;
  /** Texts that are worth something: the signature, and a key in the payload. */
  secrets: string[];
}

/** Reads the payments of a request. More than one is a mistake of the buyer. */
export function readPayments(headers: readonly Header[]): PresentedPayment[] {
  const v1 = headerOf(headers, headerName.payment);
  const v2 = headerOf(headers, headerName.paymentSignature);
  const { authorization, paymentAuthorization } = headerName;
  const credentials = headers.filter(([name, value]) => {
    const key = name.toLowerCase();
    if (key === paymentAuthorization.toLowerCase()) return true;
    return key === authorization.toLowerCase() && isPaymentScheme(value);
  });
  return [
    ...(v1 === undefined ? [] : [readV1(v1)]),
    ...(v2 === undefined ? [] : [readV2(v2)]),
    ...credentials.map(([name, value]) => readCredential(name, value)),
  ];
}

function readV1(value: string): PresentedPayment {
  const decoded = { header: headerName.payment, side: "request", wire: "x402 v1" } as const;
  const read = attempt(() => decodePaymentV1(value));
  if (!read.ok) return unreadable(decoded, value, read.fault);
  const { scheme, network, payload } = read.value;
  const terms = { scheme, network: parseNetwork(network) ?? network };
  return readable(decoded, value, { paid: payload, terms });
}

function readV2(value: string): PresentedPayment {
  const decoded = {
    header: headerName.paymentSignature,
    side: "request",
    wire: "x402 v2",
  } as const;
  const read = attempt(() => decodePaymentV2(value));
  if (!read.ok) return unreadable(decoded, value, read.fault);
  const { accepted, payload } = read.value;
  const { scheme, network, asset, payTo, amount, extra = {} } = accepted;
  const terms = { scheme, network, asset, payTo, amount, extra };
  const identifier = paymentIdentifier(read.value);
  const secrets = identifier === undefined ? [] : [identifier];
  return readable(decoded, value, { paid: payload, terms, secrets });
}

function readCredential(header: string, value: string): PresentedPayment {
  const decoded = { header, side: "request", wire: "MPP" } as const;
  const encoded = value.replace(/^payment[ \t]+/i, "");
  const read = attempt(() => decodeCredential(value));
  if (!read.ok) return unreadable(decoded, encoded, read.fault);
  const { challenge, source } = read.value;
  const paid = readAuthorizationPayload(read.value);
  if (paid === undefined) {
    return unreadable(decoded, encoded, "The credential's payload is no authorization");
  }
  const charge = attempt(() => decodeChargeRequest(challenge.request));
  const terms = charge.ok
    ? {
        scheme: `${challenge.method}/${challenge.intent}`,
        network: networkOf(charge.value.methodDetails.chainId),
        asset: charge.value.currency,
        payTo: charge.value.recipient,
        amount: charge.value.amount,
      }
    : {};
  const shown = decodeForDisplay(encoded);
  const isObject = typeof shown === "object" && shown !== null && !Array.isArray(shown);
  const value_ = isObject ? { ...shown, challenge: describeChallenge(challenge) } : shown;
  return readable(decoded, encoded, { paid, terms, challenge, source, shown: value_ });
}

type Named = Pick<DecodedHeader, "header" | "side" | "wire">;

function readable(
  named: Named,
  value: string,
  read: {
    paid: ExactEvmPayload;
    terms: NamedTerms;
    challenge?: Challenge;
    source?: string | undefined;
    secrets?: string[];
    shown?: Json | undefined;
  },
): PresentedPayment {
  const { paid, terms, challenge, source, secrets = [] } = read;
  const shown = read.shown ?? decodeForDisplay(value);
  return {
    wire: named.wire,
    paid,
    terms,
    challenge,
    source,
    decoded: shown === undefined ? named : { ...named, value: shown },
    secrets: [value, paid.signature, paid.signature.toLowerCase(), ...secrets],
  };
}

function unreadable(named: Named, value: string, fault: string): PresentedPayment {
  const shown = decodeForDisplay(value);
  return {
    wire: named.wire,
    paid: undefined,
    terms: {},
    challenge: undefined,
    source: undefined,
    decoded: shown === undefined ? { ...named, fault } : { ...named, value: shown, fault },
    secrets: [value],
  };
}
