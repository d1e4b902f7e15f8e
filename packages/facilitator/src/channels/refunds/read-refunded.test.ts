import { RpcError, RpcResponseError } from "@coinslot/chain";
import { channelSettlementAbi } from "@coinslot/protocol";
import { numberToHex, toEventSelector } from "viem";
import { expect, it } from "vitest";
import * as z from "zod";
import { account, word } from "../../testing/ledger-deposits.ts";
import { type RefundedSoFar, readRefunded } from "./read-refunded.ts";

const [contract, channelId] = [account(1), word(2)];
const topic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Refunded" ? [toEventSelector(item)] : [],
)[0];

const blockSchema = z.string().transform(Number);
const rangesSchema = z.tuple([z.object({ fromBlock: blockSchema, toBlock: blockSchema })]);
const refusal = new RpcResponseError({
  name: { number: 1, label: "node" },
  method: "eth_getLogs",
  code: -32_000,
  details: "too many blocks",
  data: undefined,
});
const asked = { contract, channelId, first: 1, isEnough: () => false };
const begun = (): RefundedSoFar => ({ next: 5_000, atOnce: 1_000, events: [] });

/** A node with events in the first block of each range, as its answer decides. */
function nodeOf(answer: (from: number, to: number) => number, amount = 1n) {
  const log = (blockNumber: number) => ({
    address: contract,
    topics: [topic, channelId, word(3)],
    data: numberToHex(amount, { size: 32 }),
    transactionHash: word(4),
    blockNumber: numberToHex(blockNumber),
  });
  return {
    chainId: 1,
    request: async ({ params }: { params?: unknown }) => {
      const [{ fromBlock, toBlock }] = rangesSchema.parse(params);
      return Array.from({ length: answer(fromBlock, toBlock) }, () => log(fromBlock));
    },
    requestMany: async () => [],
  };
}

it("events without an amount are not kept", async () => {
  const soFar = begun();
  await readRefunded(
    nodeOf(() => 900, 0n),
    asked,
    soFar,
  );
  expect(soFar).toMatchObject({ next: 0, events: [] });
});

it("a node that makes up events without end is not believed", async () => {
  const soFar = begun();
  const read = readRefunded(
    nodeOf(() => 900),
    asked,
    soFar,
  );
  await expect(read).rejects.toThrow(RpcError);
  expect(soFar.events).toHaveLength(900);
});

it("the newest events are shown by a node that has pruned the others, and returns few at once", async () => {
  const soFar = begun();
  const node = nodeOf((from, to) => {
    if (from < 4_500 || to - from >= 100) throw refusal;
    return from === 4_700 ? 1 : 0;
  });
  await expect(readRefunded(node, asked, soFar)).rejects.toThrow(RpcError);
  expect(soFar.next).toBe(4_499);
  expect(soFar.atOnce).toBe(1);
});

it("a look that is cut off in time asks for as many blocks in the next", async () => {
  const soFar = begun();
  let ranges = 0;
  const node = nodeOf(() => {
    ranges += 1;
    if (ranges > 3) throw new Error("The time is over.");
    return 0;
  });
  await expect(readRefunded(node, asked, soFar)).rejects.toThrow("The time is over.");
  expect(soFar).toMatchObject({ next: 2_000, atOnce: 1_000 });
});

it("more blocks are asked for again after a moment's refusals", async () => {
  const soFar = begun();
  let ranges = 0;
  const node = nodeOf(() => {
    ranges += 1;
    if (ranges <= 10) throw refusal;
    return 0;
  });
  await expect(readRefunded(node, asked, soFar)).rejects.toThrow(RpcError);
  expect(soFar.atOnce).toBe(1);
  await readRefunded(node, asked, soFar);
  expect(soFar.atOnce).toBeGreaterThan(100);
});

it("no block is asked for below those that show enough", async () => {
  const soFar = begun();
  const isEnough = (events: readonly unknown[]) => events.length > 0;
  await readRefunded(
    nodeOf((from) => (from === 3_001 ? 1 : 0)),
    { ...asked, isEnough },
    soFar,
  );
  expect(soFar.next).toBe(3_000);
});
