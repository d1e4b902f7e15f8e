import { sleep } from "@coinslot/chain";
import { type Address, zeroAddress } from "viem";
import type { ChainContext } from "./chain-context.ts";
import type { IndexerConfiguration } from "./configuration.ts";
import { findAnchor } from "./query/find-anchor.ts";
import { readKnownBalance } from "./query/known-balance.ts";
import { readTokenBalance } from "./rpc/read-token-balance.ts";
import { hexOfBytes } from "./store/bytes.ts";
import type { KnownToken } from "./store/known-token.ts";
import { wrapUint256 } from "./store/wrap-uint256.ts";

const confirmAfterMs = 1_000;

/**
 * A balance that differs from the token's own answer: it changed without a `Transfer`, or the index
 * is wrong.
 */
export interface BalanceDifference {
  chain: string;
  token: string;
  address: string;
  block: number;
  indexed: bigint;
  onChain: bigint;
}

/** Compares balances with the chain at intervals, and reports differences; it changes nothing. */
export async function spotCheck(
  context: ChainContext,
  options: NonNullable<IndexerConfiguration["spotCheck"]> & {
    signal: AbortSignal;
    onDifference: (difference: BalanceDifference) => void;
  },
): Promise<void> {
  const { everyMs, signal } = options;
  const { clock } = context;
  while (!signal.aborted) {
    await sleep(clock, everyMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    for (const token of context.tokens) await checkToken(context, token, options);
  }
}

/** Checks the addresses of a token that moved last. */
async function checkToken(
  context: ChainContext,
  token: KnownToken,
  options: Parameters<typeof spotCheck>[1],
): Promise<void> {
  const { logger, chain } = context;
  const { signal, onDifference } = options;
  const failures: { address?: string; error: unknown }[] = [];
  // No failure, neither a node's answer nor a listener's error, may end the work that is only
  // watched. Nor may it hide the next address.
  const attempt = async (address: string | undefined, work: () => Promise<void>) =>
    work().catch((error: unknown) => failures.push({ ...(address && { address }), error }));
  let addresses: readonly Address[] = [];
  await attempt(undefined, async () => {
    addresses = await findMoved(context, token, options.addresses);
  });
  for (const address of addresses)
    await attempt(address, async () => {
      signal.throwIfAborted();
      const difference = await findDifference(context, { token, address }, options);
      if (difference === undefined) return;
      logger.error(difference, "A balance differs from the token's");
      onDifference(difference);
    });
  const [first] = failures;
  if (first === undefined || signal.aborted) return;
  const facts = { chain: chain.name, token: token.token, count: failures.length, ...first };
  logger.warn(facts, "Balances could not be compared");
}

async function findMoved(
  { database }: ChainContext,
  token: KnownToken,
  count: number,
): Promise<Address[]> {
  const recent = await database.kysely
    .selectFrom("indexer_transfers")
    .select(["from_address", "to_address"])
    .where("token_id", "=", token.id)
    .orderBy("position", "desc")
    .limit(count)
    .execute();
  const moved = recent.flatMap((row) => [row.to_address, row.from_address].map(hexOfBytes));
  // The zero address, which mints and burns name, has no sum.
  const addresses = new Set(moved.filter((address) => address !== zeroAddress).slice(0, count));
  return [...addresses];
}

async function findDifference(
  { clock, database, pool, chain }: ChainContext,
  { token, address }: { token: KnownToken; address: Address },
  { everyMs, signal }: { everyMs: number; signal: AbortSignal },
): Promise<BalanceDifference | undefined> {
  const { gain, opening, block } = await readKnownBalance(database, { token, address });
  // Without an opening there is no comparison: it would be taken from the same answer.
  if (opening === undefined || block === undefined) return undefined;
  const indexed = wrapUint256(gain + opening);
  const anchor = await findAnchor(database, token.chainId, block);
  if (anchor === undefined) return undefined;
  const ask = () => readTokenBalance(pool, { token: token.address, address, block, anchor });
  if (indexed === (await ask())) return undefined;
  // A node that is adding a block may answer from the state after it. A difference is reported only
  // if a later answer confirms it.
  await sleep(clock, Math.min(everyMs, confirmAfterMs), signal);
  const onChain = await ask();
  if (indexed === onChain) return undefined;
  const { number } = block;
  return { chain: chain.name, token: token.token, address, block: number, indexed, onChain };
}
