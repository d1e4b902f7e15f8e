import type { Address, Hex } from "@coinslot/protocol";
import { type Log, toEventSelector } from "viem";

/** `AuthorizationUsed` of EIP-3009. */
const authorizationUsedTopic = toEventSelector(
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
);
const transferTopic = toEventSelector(
  "event Transfer(address indexed from, address indexed to, uint256 value)",
);

type Event = Pick<Log, "address" | "topics" | "data">;

/**
 * The Transfer that a token emitted for an authorization: the authorizer's next event in the
 * transaction or, with a token of the other order, the previous one. No two authorizations share a
 * Transfer.
 */
export function readOwnTransfer(
  logs: readonly Event[],
  { asset, authorizer, nonce }: { asset: Address; authorizer: Address; nonce: Hex },
): { to: Address; value: bigint } | undefined {
  const word = wordOf(authorizer);
  const events = logs.filter(
    ({ address, topics: [topic, from] }) =>
      address.toLowerCase() === asset.toLowerCase() &&
      from === word &&
      (topic === authorizationUsedTopic || topic === transferTopic),
  );
  const next = pair(events, 1);
  const previous = pair(events, -1);
  const isOfOtherOrder = ![...previous.values()].includes(undefined);
  const pairs = [...next.values()].includes(undefined) && isOfOtherOrder ? previous : next;
  const own = pairs.get(nonce);
  const to = own?.topics[2];
  if (own === undefined || to === undefined || !/^0x[0-9a-f]{64}$/.test(own.data)) return undefined;
  return { to: `0x${to.slice(-40)}`, value: BigInt(own.data) };
}

/** The neighbour of each authorization's event, if it is a Transfer. */
function pair(events: readonly Event[], step: 1 | -1): Map<Hex, Event | undefined> {
  const pairs = new Map<Hex, Event | undefined>();
  for (const [index, { topics }] of events.entries()) {
    const [topic, , nonce] = topics;
    if (topic !== authorizationUsedTopic || nonce === undefined) continue;
    const neighbour = events[index + step];
    pairs.set(nonce, neighbour?.topics[0] === transferTopic ? neighbour : undefined);
  }
  return pairs;
}

/** An address as it stands in a topic. */
function wordOf(address: Address): Hex {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}
