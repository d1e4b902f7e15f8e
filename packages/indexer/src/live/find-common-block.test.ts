import { createRpcPool } from "@coinslot/chain";
import { expect, it, onTestFinished } from "vitest";
import { bytesOfHex } from "../store/bytes.ts";
import { openIndex } from "../testing/index-by-hand.ts";
import { startUsedChain } from "../testing/scene.ts";
import { findCommonBlock } from "./find-common-block.ts";

it.each([
  { name: "the last of few known blocks", known: [4, 5, 6, 7, 8, 9, 10], forkedAt: 5, common: 5 },
  { name: "the only one below a step", known: [5, 9, 10], forkedAt: 5, common: 5 },
  { name: "one between steps", known: [1, 2, 3, 7, 8, 9, 10], forkedAt: 7, common: 7 },
  { name: "none", known: [7, 8, 9, 10], forkedAt: 5, common: undefined },
])("finds the newest common block: $name", async ({ known, forkedAt, common }) => {
  const devnet = await startUsedChain();
  const { chainId, rpcUrl } = devnet;
  const { kysely } = (await openIndex("sqlite::memory:")).database;
  for (const number of known) {
    const { hash } = await devnet.client.getBlock({ blockNumber: BigInt(number) });
    const shown = number <= forkedAt ? hash : `0x${"ab".repeat(32)}`;
    const row = { chain_id: chainId, number, hash: bytesOfHex(shown) };
    await kysely.insertInto("indexer_marks").values(row).execute();
  }
  const pool = createRpcPool({ chainId, rpcUrls: [rpcUrl] });
  onTestFinished(() => pool.close());
  const [endpoint] = pool.endpoints;
  if (endpoint === undefined) throw new Error("No endpoint");
  const past = await findCommonBlock(endpoint, kysely, { chainId, below: 10 });
  expect(past.common?.number).toBe(common);
  expect(past.doubtedFrom).toBe(known.find((number) => number > forkedAt));
});
