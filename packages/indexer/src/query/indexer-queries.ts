import type { Indexer } from "../indexer.ts";
import { readChain } from "../store/chain-row.ts";
import type { Store } from "../store/open-store.ts";
import type { TokenName } from "../transfer.ts";
import type { TrustedPool } from "../trusted-pool.ts";
import { createAskedBalances } from "./asked-balances.ts";
import { ChainStoppedError } from "./chain-stopped-error.ts";
import { listTransfers } from "./list-transfers.ts";
import { readBalance } from "./read-balance.ts";
import { readEventBounds, readEvents } from "./read-events.ts";
import { transfersOfTransaction } from "./transfers-of-transaction.ts";
import { UnknownTokenError } from "./unknown-token-error.ts";

type IndexerQueries = Pick<
  Indexer,
  "readTransfers" | "readTransactionTransfers" | "readBalance" | "readEvents" | "readLastEventId"
>;

/** Queries to an indexer's database, and to the chain where the database has no answer. */
export function createIndexerQueries({
  opened,
  pools,
}: {
  opened: () => Promise<Store>;
  /** By the name of the chain. */
  pools: ReadonlyMap<string, TrustedPool>;
}): IndexerQueries {
  const asked = createAskedBalances();

  async function find({ blockchain, token }: TokenName) {
    const { database, tokens } = await opened();
    const pool = pools.get(blockchain);
    const known = tokens.find((each) => each.blockchain === blockchain && each.token === token);
    if (pool === undefined || known === undefined)
      throw new UnknownTokenError({ blockchain, token });
    if ((await readChain(database, known.chainId)).state === "stopped")
      throw new ChainStoppedError(blockchain);
    return { database, token: known, pool };
  }

  return {
    async readTransfers(query) {
      const { database, token } = await find(query);
      return listTransfers(database, token, query);
    },
    async readTransactionTransfers(query) {
      const { database, token } = await find(query);
      return transfersOfTransaction(database, token, query.transactionHash);
    },
    async readBalance(query) {
      const { database, token, pool } = await find(query);
      return readBalance({ database, pool, asked }, { token, address: query.address });
    },
    async readEvents(query) {
      const { database, token } = await find(query);
      return readEvents(database, { ...query, token });
    },
    async readLastEventId() {
      const { database } = await opened();
      return (await readEventBounds(database)).last;
    },
  };
}
