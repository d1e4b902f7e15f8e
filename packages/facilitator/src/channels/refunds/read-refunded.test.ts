import { RpcError } from "@coinslot/chain";
import { channelSettlementAbi } from "@coinslot/protocol";
import { numberToHex, toEventSelector } from "viem";
import { expect, it } from "vitest";
import { account, word } from "../../testing/ledger-deposits.ts";
import { type RefundedSoFar, readRefunded } from "./read-refunded.ts";

const [contract, channelId] = [account(1), word(2)];
const topic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Refunded" ? [toEventSelector(item)] : [],
)[0];

/** A node with so many events of one amount in each block. */
function nodeOf({ events, amount }: { events: number; amount: bigint }) {
  const log = (blockNumber: unknown) => ({
    address: contract,
    topics: [topic, channelId, word(3)],
    data: numberToHex(amount, { size: 32 }),
    transactionHash: word(4),
    blockNumber,
  });
  return {
    chainId: 1,
    head: () => 9_999n,
    request: async ({ params }: { params?: unknown }) => {
      const [{ fromBlock }] = params as [{ fromBlock: unknown }];
      return Array.from({ length: events }, () => log(fromBlock));
    },
    requestMany: async () => [],
  };
}

it("events without an amount are not kept", async () => {
  const soFar: RefundedSoFar = { next: 1, to: 5_000, events: [] };
  await readRefunded(nodeOf({ events: 900, amount: 0n }), { contract, channelId }, soFar);
  expect(soFar).toEqual({ next: 5_001, to: 5_000, events: [] });
});

it("a node that makes up events without end is not believed", async () => {
  const soFar: RefundedSoFar = { next: 1, to: 5_000, events: [] };
  const node = nodeOf({ events: 900, amount: 1n });
  await expect(readRefunded(node, { contract, channelId }, soFar)).rejects.toThrow(RpcError);
  expect(soFar.events.length).toBeLessThan(2_000);
});
