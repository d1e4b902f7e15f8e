import type { Devnet } from "@coinslot/devnet";
import {
  type Challenge,
  challengeNonce,
  encodeCredential,
  headerName,
  parseChallenges,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { signAuthorization } from "./signed-payments.ts";

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
  const payload = await signAuthorization(devnet, index, {
    validBefore: BigInt(Math.floor(Date.parse(challenge.expires ?? "") / 1000)),
    nonce: challengeNonce(challenge),
  });
  return encodeCredential({ challenge, payload: writeAuthorizationPayload(payload) });
}
