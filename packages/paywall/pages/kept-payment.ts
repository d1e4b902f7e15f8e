import type { PayableWay } from "../src/page-data.ts";

/** An EIP-3009 authorization, as it travels. */
export interface Authorization {
  from: string;
  to: string;
  value: string;
  validAfter: string;
  validBefore: string;
  nonce: string;
}

/** The payment of this purchase: stored before it is signed, and before it is sent. */
export interface KeptPayment {
  way: PayableWay;
  authorization: Authorization;
  /** The idempotency key, under which the seller keeps the answer. */
  key: string;
  signature?: string;
  /** Set before the first attempt. */
  isSent?: boolean;
  /** Hash of its transaction, or empty, once the money has moved. */
  transaction?: string;
  /** Navigations that were to open the answer, and the time of the last, in Unix milliseconds. */
  openings?: number;
  openedAt?: number;
}

/** Where the payment of one purchase is kept: method, URL and body are its name. */
export function createKeep(purchase: string) {
  const name = `coinslot ${purchase}`;
  return {
    read(): KeptPayment | undefined {
      try {
        const kept: KeptPayment | null = JSON.parse(sessionStorage.getItem(name) ?? "null");
        return kept?.authorization?.nonce ? kept : undefined;
      } catch {
        return undefined;
      }
    },
    /** @throws where the browser stores nothing: then nothing may be signed either */
    write(payment: KeptPayment): void {
      const text = JSON.stringify(payment);
      sessionStorage.setItem(name, text);
      if (sessionStorage.getItem(name) !== text) throw new Error("sessionStorage");
    },
    drop(): void {
      sessionStorage.removeItem(name);
    },
  };
}

/** Drafts the payment of an offer: exactly its terms, from now for as long as it says. */
export function draftPayment(way: PayableWay, from: string, now: number): KeptPayment {
  const { payTo, amount, maxTimeoutSeconds } = way.accepted;
  return {
    way,
    authorization: {
      from,
      to: payTo,
      value: amount,
      validAfter: "0",
      validBefore: String(Math.floor(now / 1000) + maxTimeoutSeconds),
      nonce: `0x${randomHex()}`,
    },
    key: randomHex(),
  };
}

function randomHex(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The EIP-712 data that a wallet signs: the same that every client signs. */
export function typedDataOf({ way, authorization }: KeptPayment): string {
  const { name, version } = way.accepted.extra ?? {};
  const field = (each: string) => {
    const [type, fieldName] = each.split(" ");
    return { name: fieldName, type };
  };
  return JSON.stringify({
    domain: { name, version, chainId: way.chainId, verifyingContract: way.accepted.asset },
    types: {
      EIP712Domain: [
        "string name",
        "string version",
        "uint256 chainId",
        "address verifyingContract",
      ].map(field),
      TransferWithAuthorization: [
        "address from",
        "address to",
        "uint256 value",
        "uint256 validAfter",
        "uint256 validBefore",
        "bytes32 nonce",
      ].map(field),
    },
    primaryType: "TransferWithAuthorization",
    message: authorization,
  });
}

/** The `PAYMENT-SIGNATURE` header (x402 version 2). */
export function headerOf({ way, authorization, signature }: KeptPayment): string {
  const { accepted } = way;
  const payment = { x402Version: 2, payload: { signature, authorization }, accepted };
  const bytes = new TextEncoder().encode(JSON.stringify(payment));
  return btoa(String.fromCharCode(...bytes));
}
