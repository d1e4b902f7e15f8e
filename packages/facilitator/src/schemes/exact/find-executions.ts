import type { RpcRequester } from "@coinslot/chain";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import { parseReceipt, receiptCall } from "../../evm/transaction-receipt.ts";
import type { Claim, Execution } from "../scheme.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  readOutcomes,
  wordOf,
} from "./read-outcomes.ts";

const logsSchema = z.array(
  z.object({
    topics: z.array(z.templateLiteral(["0x", z.string()])),
    transactionHash: z.templateLiteral(["0x", z.string()]),
    blockNumber: z
      .string()
      .regex(/^0x[0-9a-f]{1,16}$/i)
      .transform(BigInt),
  }),
);

/** Nodes limit the blocks of one query. Most grant this many. */
const blocksPerQuestion = 1_000n;

/**
 * Looks for authorizations that any sender executed or cancelled, in some blocks. One query for
 * each token and range of blocks, for any number of payments. A payment that is not found is not in
 * the result.
 *
 * @throws RpcError when the chain cannot be asked, ZodError when it answers rubbish.
 */
export async function findExecutions<Item extends Claim>(options: {
  rpc: RpcRequester;
  claims: readonly Item[];
  fromBlock: bigint;
  toBlock: bigint;
}): Promise<Map<Item, Execution>> {
  const { rpc, claims, fromBlock, toBlock } = options;
  const assets = [...new Set(claims.map(({ id }) => id.asset))];
  const found = await Promise.all(
    assets.map(async (asset) => {
      const ofAsset = claims.filter(({ id }) => id.asset === asset);
      const marks = await findMarks({ rpc, asset, claims: ofAsset, fromBlock, toBlock });
      return [...(await readMarks({ rpc, marks }))];
    }),
  );
  return new Map(found.flat());
}

interface Mark<Item> {
  claim: Item;
  isUse: boolean;
  transactionHash: Hex;
  blockNumber: bigint;
}

async function findMarks<Item extends Claim>(options: {
  rpc: RpcRequester;
  asset: Address;
  claims: readonly Item[];
  fromBlock: bigint;
  toBlock: bigint;
}): Promise<Mark<Item>[]> {
  const { rpc, asset, claims, fromBlock, toBlock } = options;
  const byKey = new Map(claims.map((each) => [wordOf(each.id.payer) + each.id.nonce, each]));
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    [...new Set(claims.map(({ id }) => wordOf(id.payer)))],
    [...new Set(claims.map(({ id }) => id.nonce))],
  ];
  const marks: Mark<Item>[] = [];
  for (let from = fromBlock; from <= toBlock; from += blocksPerQuestion) {
    const last = from + blocksPerQuestion - 1n;
    const to = last < toBlock ? last : toBlock;
    const filter = { address: asset, topics, fromBlock: quantity(from), toBlock: quantity(to) };
    const answer = await rpc.request({ method: "eth_getLogs", params: [filter] }, { minBlock: to });
    for (const { topics: found, transactionHash, blockNumber } of logsSchema.parse(answer)) {
      const claim = byKey.get(`${found[1]}${found[2]}`.toLowerCase());
      if (claim === undefined) continue;
      const isUse = found[0]?.toLowerCase() === authorizationUsedTopic;
      marks.push({ claim, isUse, transactionHash: toLowerHex(transactionHash), blockNumber });
    }
  }
  return marks;
}

async function readMarks<Item extends Claim>(options: {
  rpc: RpcRequester;
  marks: readonly Mark<Item>[];
}): Promise<Map<Item, Execution>> {
  const { rpc, marks } = options;
  const found = new Map<Item, Execution>();
  for (const { claim, blockNumber } of marks) found.set(claim, { outcome: "spent", blockNumber });
  const uses = marks.filter(({ isUse }) => isUse);
  if (uses.length === 0) return found;
  const hashes = [...new Set(uses.map(({ transactionHash }) => transactionHash))];
  const minBlock = uses.reduce((most, { blockNumber }) => max(most, blockNumber), 0n);
  const answers = await rpc.requestMany(hashes.map(receiptCall), { minBlock });
  for (const [index, hash] of hashes.entries()) {
    const answer = answers[index];
    if (answer && !answer.ok) throw answer.error;
    const receipt = parseReceipt(answer?.result);
    const used = uses.flatMap((use) => (use.transactionHash === hash ? use.claim : []));
    if (receipt === undefined) {
      for (const claim of used) found.set(claim, { outcome: "unknown" });
      continue;
    }
    const { transactionHash, blockNumber, blockHash } = receipt;
    for (const [claim, outcome] of readOutcomes(receipt.logs, used)) {
      if (outcome !== "executed") continue;
      found.set(claim, {
        outcome: "executed",
        inclusion: { transactionHash, blockNumber, blockHash },
      });
    }
  }
  return found;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}
