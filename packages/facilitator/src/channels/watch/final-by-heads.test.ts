import type { RpcCall } from "@coinslot/chain";
import { beforeEach, expect, it } from "vitest";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { word } from "../../testing/ledger-deposits.ts";
import { type FormerHeads, finalByHeads } from "./final-by-heads.ts";

const id = word(1);
let former: FormerHeads;

beforeEach(() => {
  former = new Map();
});

const readingAt = (number: number): ChannelReading => ({
  balance: 1_000n,
  totalClaimed: 0n,
  withdrawal: undefined,
  refundNonce: 0n,
  block: { number, hash: word(number) },
});

/** A channel at a head, of a chain without reorganisations. */
async function look(number: number, { at }: { at: number }) {
  const rpc = {
    chainId: 1,
    request: async ({ params = [] }: RpcCall) => {
      const [height] = params;
      const hash = word(Number(height));
      return { number: height, hash, parentHash: hash, timestamp: "0x1" };
    },
    requestMany: async () => [],
  };
  const readings = {
    atHead: new Map([[id, readingAt(number)]]),
    head: { number },
    now: at * 1_000,
  };
  return (await finalByHeads({ rpc, finalAfter: 3 }, former, readings)).get(id);
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
  former.set(word(2), { reading: readingAt(10), lookedAt: 0 });
  await look(5_000, { at: 86_400 });
  expect([...former.keys()]).toEqual([id]);
});
