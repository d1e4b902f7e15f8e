import { type RpcCall, type RpcOutcome, RpcUnavailableError } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { beforeEach, expect, it } from "vitest";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { word } from "../../testing/ledger-deposits.ts";
import { type FormerHeads, finalByHeads } from "./final-by-heads.ts";

const id = word(1);
const otherId = word(2);
let former: FormerHeads;
let lost: number | undefined;
let fault: Error | undefined;
let batches: number;
const unavailable = new RpcUnavailableError({
  chainId: 1,
  subject: "eth_getBlockByNumber",
  failures: [],
  retryAfterMs: 0,
});

beforeEach(() => {
  former = new Map();
  lost = undefined;
  fault = undefined;
  batches = 0;
});

const readingAt = (number: number): ChannelReading => ({
  balance: 1_000n,
  totalClaimed: 0n,
  withdrawal: undefined,
  refundNonce: 0n,
  block: { number, hash: word(number) },
});

/** Channels at a head, of a chain without reorganisations whose node may lack a block. */
async function lookAt(number: number, { at, ids }: { at: number; ids: readonly Hex[] }) {
  const rpc = {
    chainId: 1,
    request: async () => undefined,
    requestMany: async (calls: readonly RpcCall[]) => {
      batches += 1;
      if (fault !== undefined) throw fault;
      return calls.map(({ params: [height] = [] }): RpcOutcome => {
        const failures: never[] = [];
        if (Number(height) === lost) return { ok: false, error: unavailable, failures };
        const hash = word(Number(height));
        const result = { number: height, hash, parentHash: hash, timestamp: "0x1" };
        return { ok: true, result, endpoint: 1, failures };
      });
    },
  };
  const readings = {
    atHead: new Map(ids.map((each) => [each, readingAt(number)])),
    head: { number },
    now: at * 1_000,
  };
  return finalByHeads({ rpc, finalAfter: 3 }, former, readings);
}

async function look(number: number, { at }: { at: number }) {
  return (await lookAt(number, { at, ids: [id] })).get(id);
}

it("a reading is final once its block is deep enough, also where looks are far apart", async () => {
  expect(await look(10, { at: 0 })).toBeUndefined();
  expect(await look(11, { at: 300 })).toBeUndefined();
  expect(await look(13, { at: 700 })).toMatchObject({ block: { number: 10 } });
});

it("a reading is not final after a time without a look, in which money may have left", async () => {
  await look(10, { at: 0 });
  expect(await look(5_000, { at: 86_400 })).toBeUndefined();
  expect(await look(5_003, { at: 86_410 })).toMatchObject({ block: { number: 5_000 } });
});

it("readings that were not looked for lately are forgotten", async () => {
  former.set(otherId, { reading: readingAt(10), lookedAt: 0 });
  await look(5_000, { at: 86_400 });
  expect([...former.keys()]).toEqual([id]);
});

it("readings are final in the next look where a node failed for another one", async () => {
  await lookAt(10, { at: 0, ids: [id] });
  await lookAt(11, { at: 10, ids: [id, otherId] });
  fault = new Error("No fault of a node.");
  await expect(lookAt(14, { at: 20, ids: [id, otherId] })).rejects.toThrow(fault);
  fault = undefined;
  const final = await lookAt(15, { at: 30, ids: [id, otherId] });
  expect(final.get(id)).toMatchObject({ block: { number: 10 } });
  expect(final.get(otherId)).toMatchObject({ block: { number: 11 } });
});

it("former blocks are read at once, and one that cannot be read holds up no other", async () => {
  await lookAt(10, { at: 0, ids: [id] });
  await lookAt(11, { at: 10, ids: [id, otherId] });
  lost = 10;
  const found = await lookAt(14, { at: 20, ids: [id, otherId] });
  expect([...found]).toMatchObject([[otherId, { block: { number: 11 } }]]);
  expect(batches).toBe(1);
  lost = undefined;
  expect(await look(15, { at: 30 })).toMatchObject({ block: { number: 10 } });
});

it("a final reading stays final until it is deleted", async () => {
  await look(10, { at: 0 });
  await look(13, { at: 10 });
  expect(await look(14, { at: 20 })).toMatchObject({ block: { number: 10 } });
  former.delete(id);
  expect(await look(15, { at: 30 })).toBeUndefined();
});
