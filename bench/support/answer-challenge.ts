import type { Devnet } from "@coinslot/devnet";
import {
  type Challenge,
  challengeNonce,
  encodeCredential,
  formatAuthorization,
  headerName,
  parseChallenges,
  transferTypedData,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { price } from "./signed-payments.ts";

/** The first challenge of an unpaid answer. */
export async function fetchChallenge(url: string): Promise<Challenge> {
  const response = await fetch(url);
  await response.arrayBuffer();
  const [read] = parseChallenges(response.headers.get(headerName.authenticate) ?? "");
  if (read?.ok !== true) throw new Error(`${url} has no challenge: status ${response.status}`);
  return read.challenge;
}

/** Answers a challenge by one of the devnet's paying accounts: they take turns by `index`. */
export async function answerChallenge(
  devnet: Devnet,
  challenge: Challenge,
  index: number,
): Promise<string> {
  const payers = devnet.accounts.others;
  const payer = payers[index % payers.length];
  if (payer === undefined) throw new Error("The devnet has no accounts that pay.");
  const authorization = {
    from: payer.address,
    to: devnet.accounts.seller.address,
    value: price,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.parse(challenge.expires ?? "") / 1000)),
    nonce: challengeNonce(challenge),
  };
  const signature = await payer.signTypedData(
    transferTypedData({
      authorization,
      network: devnet.network,
      asset: devnet.token,
      domain: { name: "USDT0", version: "1" },
    }),
  );
  const payload = { signature, authorization: formatAuthorization(authorization) };
  return encodeCredential({ challenge, payload: writeAuthorizationPayload(payload) });
}
