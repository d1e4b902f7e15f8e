import { type RpcCall, RpcResponseError } from "@coinslot/chain";
import { beforeEach, expect, it } from "vitest";
import { newDeposit, word } from "../../testing/ledger-deposits.ts";
import { isUsedAtDepth } from "./is-used-at-depth.ts";

const depth = 3;
let usedFrom: number | undefined;
let newest: number;
let network: Parameters<typeof isUsedAtDepth>[0]["settlement"]["network"];
let deposit: ReturnType<typeof newDeposit>;

/** A node that has the state of its newest block alone. */
beforeEach(() => {
  deposit = newDeposit();
  network = {
    rpc: {
      chainId: 1,
      request: async ({ method, params: [, at] = [] }: RpcCall) => {
        const { blockHash } = at as { blockHash: string };
        const number = Number(blockHash);
        if (number === newest) return word(usedFrom !== undefined && number >= usedFrom ? 1 : 0);
        const name = { label: "node", number: 1 };
        const details = "missing trie node";
        throw new RpcResponseError({ name, method, code: -32_000, details, data: undefined });
      },
      requestMany: async () => [],
    },
  };
});

/** The node may have come to a newer block since the look began. */
function look(head: number, { at = head } = {}): Promise<boolean> {
  newest = at;
  return isUsedAtDepth({ settlement: { network } }, deposit, {
    depth,
    look: {
      head,
      blockAt: async (below) => ({ number: head - below, hash: word(head - below), time: 1 }),
    },
  });
}

it("a use counts once the head that has shown it is deep enough", async () => {
  usedFrom = 10;
  expect(await look(10)).toBe(false);
  expect(await look(12)).toBe(false);
  expect(await look(13)).toBe(true);
});

it("a use that a node has made up once does not count", async () => {
  usedFrom = 10;
  await look(10);
  usedFrom = undefined;
  expect(await look(13)).toBe(false);
  usedFrom = 14;
  expect(await look(14)).toBe(false);
  expect(await look(17)).toBe(true);
});

it("a use that was shown before counts where the head of the look is old by now", async () => {
  usedFrom = 10;
  await look(10);
  expect(await look(13, { at: 14 })).toBe(true);
});
