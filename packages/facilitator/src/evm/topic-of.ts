import type { Hex } from "@coinslot/protocol";
import { keccak256, stringToBytes } from "viem";

/** Topic of an event: the hash of its signature. */
export function topicOf(event: string): Hex {
  return keccak256(stringToBytes(event));
}
