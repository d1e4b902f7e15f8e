import { RpcClosedError, RpcError, type RpcRequester } from "@coinslot/chain";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import { placeInBlock, readReceipt, receiptCall } from "../../evm/transaction-receipt.ts";
import type { Claim, Execution } from "../scheme.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  readOutcomes,
  wordOf,
} from "./read-outcomes.ts";

/**
 * The logs of one query, each to be read by itself. Honest ones are few: a query names its payers
 * and nonces. Most nodes return no more, either.
 */
const logsSchema = z.array(z.unknown()).max(10_000);
const word = z.string().regex(/^0x[0-9a-f]{64}$/i);
/** Event, payer and nonce: the query asks for all three, so a log without them is unreadable. */
const topicsSchema = z.object({ topics: z.tuple([word, word, word]) });
const placeSchema = z.object({
  transactionHash: z.templateLiteral(["0x", z.string()]),
  blockNumber: z
    .string()
    .regex(/^0x[0-9a-f]{1,16}$/i)
    .transform(BigInt),
  blockHash: z
    .templateLiteral(["0x", z.string()])
    .transform(toLowerHex)
    .optional()
    .catch(undefined),
  transactionIndex: placeInBlock,
});

/** Nodes limit the blocks of one query. Most grant this many. */
const blocksPerQuestion = 1_000n;

/**
 * Looks for authorizations that any sender executed or cancelled, in some blocks. One query for
 * each token and range of blocks, for any number of payments. A payment that is not found is not in
 * the result. The search for each token begins at the lowest `fromBlock` of its own payments. Those
 * of a token that stays unreadable keep an old one.
 *
 * A log or a receipt that cannot be read leaves its payments `unknown`, and those alone. So do the
 * logs of one token among several, and those of older blocks: a node may have pruned them.
 *
 * @throws RpcError when no token's logs can be read, ZodError when all are malformed.
 */
export async function findExecutions<Item extends Claim>(options: {
  rpc: RpcRequester;
  claims: readonly Item[];
  fromBlock: (claim: Item) => bigint;
  toBlock: bigint;
}): Promise<Map<Item, Execution>> {
  const { rpc, claims, toBlock } = options;
  const groups = new Map<Address, Item[]>();
  for (const claim of claims) {
    const group = groups.get(claim.id.asset);
    if (group) group.push(claim);
    else groups.set(claim.id.asset, [claim]);
  }
  const faults: unknown[] = [];
  const found = await Promise.all(
    [...groups].map(async ([asset, ofAsset]): Promise<(readonly [Item, Execution])[]> => {
      try {
        const query = { rpc, asset, claims: ofAsset, fromBlock: options.fromBlock, toBlock };
        return [...(await findOfAsset(query))];
      } catch (error) {
        if (!isNodesFault(error)) throw error;
        faults.push(error);
        return ofAsset.map((claim) => [claim, unsearched(error)] as const);
      }
    }),
  );
  if (faults.length > 0 && faults.length === groups.size) throw faults[0];
  return new Map(found.flat());
}

/** Returns whether a node has returned an error, malformed data or nothing. */
function isNodesFault(error: unknown): error is RpcError | z.ZodError {
  if (error instanceof RpcClosedError) return false;
  return error instanceof RpcError || error instanceof z.ZodError;
}

interface AssetQuery<Item> {
  rpc: RpcRequester;
  asset: Address;
  claims: readonly Item[];
  fromBlock: (claim: Item) => bigint;
  toBlock: bigint;
}

async function findOfAsset<Item extends Claim>(
  query: AssetQuery<Item>,
): Promise<Map<Item, Execution>> {
  const { marks, undecided } = await findMarks(query);
  const found = await readMarks({ rpc: query.rpc, marks });
  for (const [claim, execution] of undecided) {
    if (!found.has(claim)) found.set(claim, execution);
  }
  return found;
}

interface Mark<Item> {
  claim: Item;
  isUse: boolean;
  transactionHash: Hex;
  blockNumber: bigint;
  blockHash?: Hex | undefined;
  transactionIndex?: number | undefined;
}

/**
 * The newest blocks come first. `undecided`: claims that a log may be about which cannot be read.
 *
 * @throws RpcError, ZodError where the logs of the newest blocks cannot be read
 */
async function findMarks<Item extends Claim>(
  query: AssetQuery<Item>,
): Promise<{ marks: Mark<Item>[]; undecided: Map<Item, Execution> }> {
  const { rpc, asset, claims, toBlock } = query;
  const fromBlock = claims.map(query.fromBlock).reduce(min);
  const byKey = new Map(claims.map((each) => [wordOf(each.id.payer) + each.id.nonce, each]));
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    [...new Set(claims.map(({ id }) => wordOf(id.payer)))],
    [...new Set(claims.map(({ id }) => id.nonce))],
  ];
  const ranges: Mark<Item>[][] = [];
  const undecided = new Map<Item, Execution>();
  for (let to = toBlock; to >= fromBlock; to -= blocksPerQuestion) {
    const from = max(fromBlock, to - blocksPerQuestion + 1n);
    const filter = { address: asset, topics, fromBlock: quantity(from), toBlock: quantity(to) };
    let logs: unknown[];
    try {
      const call = { method: "eth_getLogs", params: [filter] };
      logs = logsSchema.parse(await rpc.request(call, { minBlock: to }));
    } catch (error) {
      if (to === toBlock || !isNodesFault(error)) throw error;
      for (const claim of claims) {
        if (query.fromBlock(claim) > to || undecided.has(claim)) continue;
        undecided.set(claim, unsearched(error));
      }
      break;
    }
    const ofRange: Mark<Item>[] = [];
    for (const log of logs) {
      const logTopics = topicsSchema.safeParse(log).data?.topics;
      if (logTopics === undefined) {
        for (const claim of claims) undecided.set(claim, unreadable(malformedLog));
        continue;
      }
      const [event, payer, nonce] = logTopics;
      const claim = byKey.get(`${payer}${nonce}`.toLowerCase());
      if (claim === undefined) continue;
      const place = placeSchema.safeParse(log).data;
      if (place === undefined || place.blockNumber < from || place.blockNumber > to) {
        undecided.set(claim, unreadable(malformedLog));
        continue;
      }
      const isUse = event.toLowerCase() === authorizationUsedTopic;
      ofRange.push({ ...place, claim, isUse, transactionHash: toLowerHex(place.transactionHash) });
    }
    ranges.unshift(ofRange);
  }
  return { marks: ranges.flat(), undecided };
}

async function readMarks<Item extends Claim>(options: {
  rpc: RpcRequester;
  marks: readonly Mark<Item>[];
}): Promise<Map<Item, Execution>> {
  const { rpc, marks } = options;
  const found = new Map<Item, Execution>();
  for (const { claim, ...mark } of marks) found.set(claim, { outcome: "spent", ...mark });
  const usesByHash = new Map<Hex, Mark<Item>[]>();
  let minBlock = 0n;
  for (const mark of marks) {
    if (!mark.isUse) continue;
    const known = usesByHash.get(mark.transactionHash);
    if (known) known.push(mark);
    else usesByHash.set(mark.transactionHash, [mark]);
    minBlock = max(minBlock, mark.blockNumber);
  }
  if (usesByHash.size === 0) return found;
  const hashes = [...usesByHash.keys()];
  const answers = await rpc.requestMany(hashes.map(receiptCall), { minBlock });
  for (const [index, hash] of hashes.entries()) {
    const { receipt, fault } = readReceipt(hash, answers[index]);
    const uses = usesByHash.get(hash) ?? [];
    if (receipt === undefined) {
      const unknown = fault ? { outcome: "unknown" as const, fault } : unreadable(noReceipt);
      for (const { claim } of uses) found.set(claim, unknown);
      continue;
    }
    const { transactionHash, blockNumber, blockHash, transactionIndex } = receipt;
    const inclusion = { transactionHash, blockNumber, blockHash };
    const isThere = (use: Mark<Item>) => use.blockNumber === BigInt(blockNumber);
    const used = uses.filter(isThere).map(({ claim }) => claim);
    for (const use of uses) if (!isThere(use)) found.set(use.claim, unreadable(noReceipt));
    for (const [claim, outcome] of readOutcomes(receipt.logs, used)) {
      if (outcome === "executed") found.set(claim, { outcome, inclusion, transactionIndex });
      // The node's log says that it is used there, and the node's receipt does not.
      else if (outcome === "absent") found.set(claim, unreadable(noReceipt));
    }
  }
  return found;
}

const noReceipt = "A node returned a log, and no receipt that has it";
const malformedLog = "A node returned a malformed log";

function unsearched(fault: Error): Execution {
  return { outcome: "unknown", fault, isUnsearched: true };
}

function unreadable(message: string): Execution {
  return { outcome: "unknown", fault: new z.ZodError([{ code: "custom", path: [], message }]) };
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}
