import {
  blockByNumber,
  parseBlockHeader,
  type RpcCall,
  RpcResponseError,
  RpcUnavailableError,
} from "@coinslot/chain";
import type { Address } from "@coinslot/protocol";
import * as z from "zod";
import type { SettlementNetwork } from "../context.ts";
import { isStuck } from "../evidence/is-stuck.ts";
import type { Relayer } from "./relayer-context.ts";
import { everywhereMs, withinTime } from "./within-time.ts";

const nonceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,13}$/i)
  .transform(Number);

/**
 * Largest gap of nonces that is filled, and the largest lead over our own nonces that two reads
 * suffice for. Dropped transactions leave a gap of those in flight.
 */
export const maxGap = 256;
/** A network, and the context of its settlement. */
type Electorate = Pick<Relayer, "context" | "network">;

/** Further reads, all of which have to agree, for a number further ahead. */
const farReads = 4;

/**
 * Number of the relayer's nonces that stand in blocks. A number beyond `next`, the first that we
 * have not used, would leave a gap that nothing passes. It counts only as far as every endpoint of
 * the right chain that answers returns it. One endpoint alone is read twice; a number far beyond is
 * read five times. A gateway may send some requests to nodes of another chain.
 *
 * A number beyond `lowest`, a nonce of ours that waits for its block, would have that transaction
 * given up. It counts as far as every endpoint returns it, too. A node that counts fewer says no
 * more than that this nonce is unused.
 *
 * A number that is too low does less harm: nodes refuse a nonce that was used. Where all of them
 * do, `countRefusedNonces` counts.
 */
export async function countUsedNonces(
  relayer: Relayer,
  { next, lowest = next }: { next: number; lowest?: number },
): Promise<number> {
  const { context, network, address, labels } = relayer;
  const { rpc } = network;
  const count = { method: "eth_getTransactionCount", params: [address, "latest"] };
  let used = nonceSchema.parse(await rpc.request(count));
  const learn = (again: number) => {
    if (again !== used) {
      context.logger.warn({ ...labels, used, again }, "a node was wrong about the nonce");
    }
    used = Math.min(used, again);
  };
  const isBeyond = used > next;
  if (isBeyond || used > lowest) {
    const least = isBeyond ? 0 : lowest;
    for (const each of await countEverywhere(relayer, count)) {
      if (each !== undefined) learn(Math.max(each, least));
    }
  }
  const reads = used - next > maxGap ? farReads : 1;
  for (let read = 0; read < reads && used > next; read += 1) {
    const chainId = nonceSchema.parse(await rpc.request({ method: "eth_chainId" }));
    learn(
      chainId === rpc.chainId ? nonceSchema.parse(await rpc.request(count)) : Math.min(used, next),
    );
  }
  return used;
}

/**
 * Number of the relayer's nonces that stand in blocks, where every node has refused a transaction's
 * nonce as used. Nodes that count it as unused are wrong: the highest number counts that an
 * endpoint returns in several reads, of the right chain.
 */
export async function countRefusedNonces(
  relayer: Relayer,
  { used, next }: { used: number; next: number },
): Promise<number> {
  const count = { method: "eth_getTransactionCount", params: [relayer.address, "latest"] };
  const first = await countEverywhere(relayer, count);
  const highest = Math.max(used, ...first.flatMap((each) => each ?? []));
  const reads = highest - next > maxGap ? farReads : 1;
  let agreed = first;
  for (let read = 0; read < reads; read += 1) {
    const again = await countEverywhere(relayer, count);
    agreed = agreed.map((each, index) => (each === again[index] ? each : undefined));
  }
  return Math.max(used, ...agreed.flatMap((each) => each ?? []));
}

/** Numbers of the endpoints that count a nonce as used, and as unused; none of a single one. */
export type CountWords = (nonce: number) => Promise<{ used: number; unused: number }>;

/**
 * Makes what returns the endpoints' words about the nonces of an address. They are asked once, when
 * the first is needed: however many nonces a look is about, it waits once.
 */
export function createCountWords(context: Electorate, address: Address): CountWords {
  const count = { method: "eth_getTransactionCount", params: [address, "latest"] };
  let asked: ReturnType<typeof countEverywhere> | undefined;
  return async (nonce) => {
    asked ??= countEverywhere(context, count, everywhereMs);
    const counts = (await asked).filter((each) => each !== undefined);
    const used = counts.filter((each) => each > nonce).length;
    return { used, unused: counts.length - used };
  };
}

/**
 * The count of each endpoint, where there are several; `undefined` of one that does not answer, or
 * serves another chain. One that is stuck at an old block has no say, either: it would hold up a
 * relayer for ever whose ledger was restored.
 */
async function countEverywhere(
  { context, network }: Electorate,
  count: RpcCall,
  maxMs?: number,
): Promise<(number | undefined)[]> {
  const { endpoints, chainId } = network.rpc;
  if (endpoints.length < 2) return [];
  const asking = endpoints.map(async (endpoint) => {
    const calls = [blockByNumber("latest"), { method: "eth_chainId" }, count];
    const asked = await endpoint.requestMany(calls).catch(() => []);
    const [block, chain, used] = asked.map((each) => (each.ok ? each.result : undefined));
    const isOurs = nonceSchema.safeParse(chain).data === chainId;
    const head = isOurs ? parseBlockHeader(block) : undefined;
    return { head, used: nonceSchema.safeParse(used).data };
  });
  const answers =
    maxMs === undefined
      ? await Promise.all(asking)
      : await withinTime(context.clock, maxMs, asking);
  const heads = answers.flatMap((answer) => answer?.head ?? []);
  return answers.map((answer) => {
    if (answer?.head === undefined || isStuck(answer.head, heads, context.now())) return undefined;
    return answer.used;
  });
}

/**
 * Number of an address's used nonces by the newest block. A node that lags cannot answer for that
 * block. `undefined`: no node answers.
 */
export async function countAtHead(
  { rpc, watcher, times }: SettlementNetwork,
  address: Address,
): Promise<{ used: number; block: number } | undefined> {
  const { number } = await watcher.read(times.resendMs());
  const params = [address, `0x${number.toString(16)}`];
  try {
    const count = await rpc.request(
      { method: "eth_getTransactionCount", params },
      { minBlock: number },
    );
    return { used: nonceSchema.parse(count), block: Number(number) };
  } catch (error) {
    // A node may have no state of that block.
    if (error instanceof RpcResponseError || error instanceof RpcUnavailableError) return undefined;
    throw error;
  }
}
