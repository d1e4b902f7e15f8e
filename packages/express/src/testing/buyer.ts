import { randomBytes } from "node:crypto";
import {
  type Authorization,
  decodePaymentRequired,
  encodePaymentPayload,
  formatAuthorization,
  type Hex,
  headerName,
  type Offer,
  type OfferedRequirements,
  type PaymentPayload,
  type PaymentRequirements,
  parsePaymentRequiredV1,
  toLowerHex,
  transferTypedData,
} from "@coinslot/protocol";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";

/** A payment, signed, and the headers that carry it. */
export interface SignedPayment {
  payload: PaymentPayload;
  headers: Record<string, string>;
}

/** A buyer with a wallet. */
export interface Buyer {
  account: PrivateKeyAccount;
  /** Requests the offer of a URL and signs it. */
  payFor(
    url: string,
    options?: { version?: 1 | 2; init?: RequestInit; authorization?: Partial<Authorization> },
  ): Promise<SignedPayment>;
  /** Signs one offered way to pay. */
  sign(
    offered: OfferedRequirements,
    authorization?: Partial<Authorization>,
  ): Promise<SignedPayment>;
}

/** A buyer with a wallet of its own, or with the given account. */
export function createBuyer(account = privateKeyToAccount(generatePrivateKey())): Buyer {
  async function sign(
    offered: OfferedRequirements,
    changes: Partial<Authorization> = {},
  ): Promise<SignedPayment> {
    const { requirements } = offered;
    const authorization = { ...authorize(account, requirements), ...changes };
    const { name, version } = requirements.extra ?? {};
    const signature = await account.signTypedData(
      transferTypedData({
        authorization,
        network: requirements.network,
        asset: requirements.asset,
        domain: { name: String(name), version: String(version) },
      }),
    );
    const exact = { signature, authorization: formatAuthorization(authorization) };
    return toHeaders(toPayload(offered, exact));
  }

  return {
    account,
    sign,
    async payFor(url, { version = 2, init, authorization } = {}) {
      const offer = await fetchOffer(url, version, init);
      const [first] = offer.accepts;
      if (first === undefined) throw new Error(`${url} offers nothing in version ${version}`);
      return sign(first, authorization);
    },
  };
}

/** The offer of an unpaid request. */
export async function fetchOffer(url: string, version: 1 | 2, init?: RequestInit): Promise<Offer> {
  const response = await fetch(url, init);
  if (response.status !== 402) throw new Error(`${url} answered ${response.status}`);
  const header = response.headers.get(headerName.paymentRequired) ?? "";
  const body = await response.text();
  return version === 1 ? parsePaymentRequiredV1(JSON.parse(body)) : decodePaymentRequired(header);
}

/** The headers that carry a payment. */
export function toHeaders(payload: PaymentPayload): SignedPayment {
  const name = payload.x402Version === 1 ? headerName.payment : headerName.paymentSignature;
  return { payload, headers: { [name]: encodePaymentPayload(payload) } };
}

function authorize(account: PrivateKeyAccount, requirements: PaymentRequirements): Authorization {
  const nonce: Hex = `0x${randomBytes(32).toString("hex")}`;
  return {
    from: toLowerHex(account.address),
    to: toLowerHex(requirements.payTo),
    value: BigInt(requirements.amount),
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1000) + requirements.maxTimeoutSeconds),
    nonce,
  };
}

function toPayload(
  offered: OfferedRequirements,
  payload: PaymentPayload["payload"],
): PaymentPayload {
  if (offered.x402Version === 2) return { x402Version: 2, payload, accepted: offered.accepted };
  const { networkName, requirements } = offered;
  return { x402Version: 1, scheme: requirements.scheme, network: networkName, payload };
}
