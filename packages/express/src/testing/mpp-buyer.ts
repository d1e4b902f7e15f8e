import {
  type Authorization,
  type Challenge,
  type Credential,
  challengeNonce,
  decodeChargeRequest,
  encodeCredential,
  formatAuthorization,
  formatSource,
  networkOf,
  parseChallenges,
  type TokenDomain,
  toLowerHex,
  transferTypedData,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";

/** A buyer that speaks MPP. */
export interface MppBuyer {
  account: PrivateKeyAccount;
  /** Requests the challenges of a URL, and answers the first. */
  payFor(url: string, init?: RequestInit): Promise<string>;
  /** Answers a challenge. */
  answer(challenge: Challenge, changes?: Partial<Authorization>): Promise<Credential>;
}

/** A buyer of a token by MPP, with a wallet of its own, or with the given account. */
export function createMppBuyer(
  domain: TokenDomain,
  account = privateKeyToAccount(generatePrivateKey()),
): MppBuyer {
  async function answer(
    challenge: Challenge,
    changes: Partial<Authorization> = {},
  ): Promise<Credential> {
    const { amount, currency, recipient, methodDetails } = decodeChargeRequest(challenge.request);
    const network = networkOf(methodDetails.chainId);
    const authorization: Authorization = {
      from: toLowerHex(account.address),
      to: toLowerHex(recipient),
      value: BigInt(amount),
      validAfter: 0n,
      validBefore: BigInt(Math.floor(Date.parse(challenge.expires ?? "") / 1000)),
      nonce: challengeNonce(challenge),
      ...changes,
    };
    const signature = await account.signTypedData(
      transferTypedData({ authorization, network, asset: toLowerHex(currency), domain }),
    );
    const paid = { signature, authorization: formatAuthorization(authorization) };
    const source = formatSource(network, account.address);
    return { challenge, payload: writeAuthorizationPayload(paid), source };
  }

  return {
    account,
    answer,
    async payFor(url, init) {
      const [challenge] = await fetchChallenges(url, init);
      if (challenge === undefined) throw new Error(`${url} has no challenge`);
      return encodeCredential(await answer(challenge));
    },
  };
}

/** The challenges of an unpaid request. */
export async function fetchChallenges(url: string, init?: RequestInit): Promise<Challenge[]> {
  const response = await fetch(url, init);
  if (response.status !== 402) throw new Error(`${url} answered ${response.status}`);
  return challengesOf(response.headers.get("WWW-Authenticate"));
}

/** The challenges of a header. */
export function challengesOf(header: string | null | undefined): Challenge[] {
  return parseChallenges(header ?? "").map((read) => {
    if (!read.ok) throw read.error;
    return read.challenge;
  });
}
