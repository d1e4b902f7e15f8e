import { keccak256 } from "../evm/keccak.ts";
import type { Hex } from "../money/address.ts";
import type { Challenge } from "./challenge.ts";

/** The EIP-3009 nonce of a challenge's credential: Keccak-256 of its id and its realm, joined. */
export function challengeNonce({ id, realm }: Pick<Challenge, "id" | "realm">): Hex {
  return `0x${Buffer.from(keccak256(Buffer.from(id + realm, "utf8"))).toString("hex")}`;
}
