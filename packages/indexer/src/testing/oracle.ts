import { isDeepStrictEqual } from "node:util";
import type { Devnet } from "@coinslot/devnet";
import type { Database } from "@coinslot/storage";
import { type Address, erc20Abi, type Hex, parseEventLogs } from "viem";
import { expect } from "vitest";
import type { Indexer } from "../indexer.ts";
import { BalanceUnavailableError } from "../query/balance-unavailable-error.ts";
import { readIndexedTransfer, selectIndexedTransfers } from "../query/indexed-transfers.ts";
import type { BlockId } from "../store/block-id.ts";
import { bytesOfHex, hexOfBytes } from "../store/bytes.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** Limit of each wait: a busy machine takes ten times as long as another. */
const timeoutMs = 60_000;

/** A token of the chain under its name in the indexer. */
export interface Watched {
  blockchain: string;
  token: string;
  address: Address;
}

/**
 * The transfers of a token as the node itself has them, read block by block and decoded by viem.
 */
async function scanChain(
  { client }: Pick<Devnet, "client">,
  { address }: Pick<Watched, "address">,
  fromBlock = 0n,
) {
  const raw = await client.getLogs({ address, fromBlock, toBlock: "latest" });
  const logs = parseEventLogs({ abi: erc20Abi, eventName: "Transfer", logs: raw });
  return logs.map((log) => ({
    blockNumber: Number(log.blockNumber),
    blockHash: log.blockHash,
    transactionHash: log.transactionHash,
    transactionIndex: log.transactionIndex,
    logIndex: log.logIndex,
    from: lower(log.args.from),
    to: lower(log.args.to),
    amount: log.args.value,
  }));
}

/** The transfers of a token as stored, in their order. */
export async function readStored(indexer: Indexer, watched: Watched) {
  const database = await indexer.database();
  const token = await findToken(database, watched);
  const rows = await selectIndexedTransfers(database, token).orderBy("transfer.position").execute();
  return rows.map((row) => {
    const transfer = readIndexedTransfer(row, { token, dialect: database.dialect });
    const { blockNumber, blockHash, transactionHash, transactionIndex, logIndex } = transfer;
    const { from, to, amount } = transfer;
    return {
      blockNumber,
      blockHash,
      transactionHash,
      transactionIndex,
      logIndex,
      from,
      to,
      amount,
    };
  });
}

/** The newest block up to which the token is stored; undefined while that is history. */
async function readNewestBlock(indexer: Indexer, watched: Watched): Promise<BlockId | undefined> {
  const { kysely } = await indexer.database();
  const { id } = await findToken({ kysely }, watched);
  const row = await kysely
    .selectFrom("indexer_ranges as range")
    .innerJoin("indexer_tokens as token", "token.id", "range.token_id")
    .innerJoin("indexer_window as window", (join) =>
      join
        .onRef("window.chain_id", "=", "token.chain_id")
        .onRef("range.next_block", "=", (from) => from("window.number", "+", 1)),
    )
    .select(["window.number", "window.hash"])
    .where("token.id", "=", id)
    .executeTakeFirst();
  return row && { number: row.number, hash: hexOfBytes(row.hash) };
}

async function readHead({ client }: Pick<Devnet, "client">): Promise<BlockId> {
  const { number, hash } = await client.getBlock();
  return { number: Number(number), hash };
}

async function findToken({ kysely }: Pick<Database<IndexerSchema>, "kysely">, watched: Watched) {
  const row = await kysely
    .selectFrom("indexer_tokens as token")
    .innerJoin("indexer_chains as chain", "chain.chain_id", "token.chain_id")
    .select(["token.id", "token.chain_id"])
    .where("token.address", "=", bytesOfHex(watched.address))
    .where("chain.name", "=", watched.blockchain)
    .executeTakeFirstOrThrow();
  return {
    ...watched,
    address: lower(watched.address),
    id: row.id,
    chainId: row.chain_id,
    startBlock: 0,
  };
}

/**
 * The rule for every test: stored rows equal a fresh scan of the chain, and every balance equals
 * the token's. Waits until the indexer has caught up; `nodesFail`: also until its nodes return a
 * balance.
 */
export async function expectExact(
  indexer: Indexer,
  devnet: Devnet,
  watched: Watched,
  { fromBlock = 0n, nodesFail = false } = {},
): Promise<void> {
  // By its hash: blocks without transfers may have been replaced without a trace in the stored
  // rows.
  await expect
    .poll(async () => [await readNewestBlock(indexer, watched), await readHead(devnet)], {
      timeout: timeoutMs,
      interval: 20,
    })
    .toSatisfy(([stored, head]) => isDeepStrictEqual(stored, head));
  const onChain = await scanChain(devnet, watched, fromBlock);
  await expect
    .poll(() => readStored(indexer, watched), { timeout: timeoutMs, interval: 50 })
    .toEqual(onChain);
  const addresses = [...new Set(onChain.flatMap(({ from, to }) => [from, to]))];
  for (const address of addresses.slice(0, 50)) {
    const balance = await devnet.client.readContract({
      address: watched.address,
      abi: erc20Abi,
      functionName: "balanceOf",
      args: [address],
    });
    const question = { ...watched, address };
    const told = await (nodesFail ? askBalance(indexer, question) : indexer.readBalance(question));
    expect(told, `balance of ${address}`).toBe(balance);
  }
}

/** Waits until everything that is final has been read twice, and compares it with the chain. */
export async function expectVerified(
  indexer: Indexer,
  devnet: Devnet,
  watched: Watched,
  finalDepth: number,
): Promise<void> {
  const readVerifiedTo = async () =>
    (await indexer.status()).chains[0]?.tokens[0]?.verifiedTo ?? Number.NEGATIVE_INFINITY;
  await expect
    .poll(async () => Number(await devnet.client.getBlockNumber()) - (await readVerifiedTo()), {
      timeout: timeoutMs,
      interval: 50,
    })
    .toBeLessThanOrEqual(finalDepth);
  const verifiedTo = await readVerifiedTo();
  const isVerified = ({ blockNumber }: { blockNumber: number }) => blockNumber <= verifiedTo;
  const stored = await readStored(indexer, watched);
  expect(stored.filter(isVerified)).toEqual((await scanChain(devnet, watched)).filter(isVerified));
}

/** A misbehaving node may have to be asked several times, and its final answer must be right. */
async function askBalance(indexer: Indexer, question: Watched): Promise<bigint | undefined> {
  let told: bigint | undefined;
  await expect
    .poll(
      async () => {
        try {
          told = await indexer.readBalance(question);
          return "told";
        } catch (error) {
          if (error instanceof BalanceUnavailableError) return String(error.cause ?? error);
          throw error;
        }
      },
      { timeout: timeoutMs, interval: 20 },
    )
    .toBe("told");
  return told;
}

function lower(hex: Hex): Hex {
  return `0x${hex.slice(2).toLowerCase()}`;
}
