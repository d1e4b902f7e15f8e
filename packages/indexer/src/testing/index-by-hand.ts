import { migrate, openDatabase, registerEndpoints } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { onTestFinished } from "vitest";
import { addTransfers } from "../store/add-transfers.ts";
import { bytesOfHex } from "../store/bytes.ts";
import { addChain, updateChain } from "../store/chain-row.ts";
import { updateChecks } from "../store/checks.ts";
import { coverRange } from "../store/coverage.ts";
import { forgetRange } from "../store/forget-range.ts";
import type { KnownToken } from "../store/known-token.ts";
import { mendBlock } from "../store/mend-block.ts";
import { indexerMigrations } from "../store/migrations/indexer-migrations.ts";
import { logsPerBlock } from "../store/position.ts";
import { readStored } from "../store/read-stored.ts";
import { rollBack } from "../store/roll-back.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { TransferBatch } from "../transfer-log/transfer-batch.ts";
import { anyBlocks, type SilentBlocks } from "../webhooks/find-returned.ts";
import { indexerOutbox } from "../webhooks/indexer-outbox.ts";
import { reopenTold, tellFinal } from "../webhooks/tell-final.ts";
import { changeWatched } from "../webhooks/watched-addresses.ts";

export const chainId = 31_337;
const usdt = `0x${"aa".repeat(20)}` as const;
export const [watched, other, stranger] = ["11", "22", "33"].map(
  (byte): `0x${string}` => `0x${byte.repeat(20)}`,
) as [`0x${string}`, `0x${string}`, `0x${string}`];
const hashOf = (name: string) => `0x${Buffer.from(name).toString("hex").padEnd(64, "0")}`;

type Sent = {
  transaction: string;
  to?: `0x${string}`;
  from?: `0x${string}`;
  log?: number;
  amount?: bigint;
};

/** Opens an index by hand: the writer's statements, without a chain. */
export async function openIndex(
  url: string,
  { types = ["transfer.included", "transfer.final", "transfer.reverted"] } = {},
) {
  const database = await openDatabase<IndexerSchema>({ url, durable: false });
  onTestFinished(() => database.close());
  await migrate(database, indexerMigrations);
  const { dialect, kysely } = database;
  await addChain(database, { chainId, name: "devnet" });
  await sql`
    insert into indexer_tokens (chain_id, address, name, opens_at_zero, revision)
    values (${chainId}, ${bytesOfHex(usdt)}, 'usdt', 1, 0)
  `.execute(kysely);
  const token: KnownToken = {
    blockchain: "devnet",
    token: "usdt",
    id: 1,
    chainId,
    address: usdt,
    startBlock: 0,
  };
  const outbox = indexerOutbox(database);
  const receiver = (id: string) => ({ id, url: "https://example.com", secrets: [], types });
  await registerEndpoints(outbox, [receiver("whk_a"), receiver("whk_b")]);

  const batchOf = (number: number, block: string, transfers: readonly Sent[]): TransferBatch => ({
    rows: transfers.map(({ transaction, to = watched, from = stranger, log = 0, amount = 5n }) => ({
      token_id: 1,
      position: number * logsPerBlock + log,
      transaction_index: 0,
      transfer_index: transfers.filter(
        (each) => each.transaction === transaction && (each.log ?? 0) < log,
      ).length,
      transaction_hash: bytesOfHex(hashOf(transaction)),
      from_address: bytesOfHex(from),
      to_address: bytesOfHex(to),
      amount: dialect.amount.encode(amount),
    })),
    blocks: new Map([[number, { hash: hashOf(block), timestampMs: 1_000 }]]),
    gains: new Map(),
    last: undefined,
    oddities: [],
    faults: [],
  });
  const range = (number: number) => ({ from: number, next: number + 1 });
  async function tell(
    transaction: Transaction<IndexerSchema>,
    silent?: SilentBlocks,
  ): Promise<void> {
    let rest: Awaited<ReturnType<typeof tellFinal>> = { silent };
    while (rest !== undefined) rest = await tellFinal(transaction, dialect, { chainId, ...rest });
  }
  return {
    database,
    outbox,
    include: (number: number, block: string, transfers: readonly Sent[], isAnnounced = true) =>
      database.transaction((tx) =>
        addTransfers(tx, dialect, {
          chainId,
          tokens: [token],
          range: range(number),
          batch: batchOf(number, block, transfers),
          isAnnounced,
        }),
      ),
    rollBackTo: (block: number) =>
      database.transaction((tx) => rollBack(tx, dialect, { chainId, block })),
    mend: (number: number, block: string, transfers: readonly Sent[]) =>
      database.transaction(async (tx) => {
        const place = { chainId, tokens: [token], range: range(number) };
        const { rows: mended } = await readStored(tx, place);
        await mendBlock(tx, dialect, {
          chainId,
          tokens: [token],
          block: { number, hash: hashOf(block), timestampMs: 1_000 },
          truth: batchOf(number, block, transfers),
          isAnnounced: true,
          sums: new Map(),
        });
        await tell(tx, { tokenIds: [1], range: range(number), mended });
      }),
    forget: (number: number) =>
      database.transaction((tx) =>
        forgetRange(tx, dialect, { chainId, tokenIds: [1], range: range(number) }),
      ),
    finalise: (number: number) =>
      database.transaction(async (tx) => {
        const head = { number, timestampMs: 1_000, finalized: number };
        await updateChain(tx, dialect, { chainId, news: { head, isProgress: true } });
        await tell(tx);
      }),
    verify: (number: number) =>
      database.transaction(async (tx) => {
        await reopenTold(tx, dialect, { tokenIds: [1], range: range(number) });
        await coverRange(tx, 1, range(number), "indexer_verified_ranges");
        await tell(tx, { tokenIds: [1], range: range(number) });
      }),
    doubt: (from: number | null) =>
      database.transaction(async (tx) => {
        await updateChecks(tx, dialect, { chainId, news: { doubted_from: from } });
        await tell(tx, anyBlocks);
      }),
    watch: (endpoint = "whk_a", addresses = [watched]) =>
      changeWatched(outbox, { endpoint, add: addresses }),
    /** Events in their order, as `type transaction block`. What is asked for follows. */
    async eventsOf(
      endpoint = "whk_a",
      { hasAmount = false, hasKey = false } = {},
    ): Promise<string[]> {
      const { rows } = await sql<{ type: string; payload: string; key: string }>`
        select type, payload, event.key from indexer_outbox_deliveries as delivery
        join indexer_outbox_events as event on event.seq = delivery.event_seq
        where endpoint_id = ${endpoint} order by event.seq
      `.execute(kysely);
      return rows.map(({ type, payload, key }) => {
        const { transactionHash, blockHash, amount } = JSON.parse(payload);
        const nameOf = (hash: string) =>
          Buffer.from(hash.slice(2), "hex").toString().replaceAll("\0", "");
        const names = [type.replace("transfer.", ""), nameOf(transactionHash), nameOf(blockHash)];
        return [...names, ...(hasAmount ? [amount] : []), ...(hasKey ? [key] : [])].join(" ");
      });
    },
  };
}
