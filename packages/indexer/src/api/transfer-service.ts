import type { Address, Hash } from "viem";
import type { IndexedTransfer, TokenName } from "../transfer.ts";
import { ApiError, badRequest } from "./api-error.ts";
import { decodeCursor, encodeCursor, type TransferPlace } from "./cursor.ts";
import type { SourceHealth, TransferSource, TransfersQuery } from "./transfer-source.ts";
import type { BalanceBody } from "./wire/balance.ts";
import type { ChainsBody } from "./wire/chains.ts";
import type { ErrorBody } from "./wire/error.ts";
import type { HealthBody } from "./wire/health.ts";
import type { TransferRecord, TransfersBody } from "./wire/transfer.ts";
import { type BalanceQuery, toMilliseconds, usualPage } from "./wire/transfer-query.ts";

/** The owner, and a selection of its transfers. */
export interface TransferHistoryQuery extends BalanceQuery {
  /** 1 to 1000, default 10. */
  limit?: number | undefined;
  /** Milliseconds since 1970, both inclusive; values below 10^11 are taken as seconds. */
  fromTs?: number | undefined;
  toTs?: number | undefined;
  /** Default `desc`, the newest first. */
  sort?: "asc" | "desc" | undefined;
  /** `next` of the page before. */
  cursor?: string | undefined;
}

/** One page of transfers, and the cursor of the next if there are more. */
export interface TransferPage extends TransfersBody {
  next?: string;
}

/**
 * The reading operations of the API. `createTransferService` answers them in process, without keys
 * and limits, and `createIndexerClient` over HTTP. So a proxy that serves the data to others takes
 * either. Refusals are `ApiError`s.
 */
export interface TransferService {
  getHealth(): Promise<HealthBody>;
  listChains(): Promise<ChainsBody>;
  getTokenTransfers(query: TransferHistoryQuery): Promise<TransferPage>;
  getTokenBalances(query: BalanceQuery): Promise<BalanceBody>;
  /** Rejects with a 404 where there are none. */
  getTransactionTransfers(query: TokenName & { txHash: string }): Promise<TransfersBody>;
  batchTokenTransfers(
    queries: readonly Omit<TransferHistoryQuery, "sort" | "cursor">[],
  ): Promise<(TransfersBody | ErrorBody)[]>;
  batchTokenBalances(queries: readonly BalanceQuery[]): Promise<(BalanceBody | ErrorBody)[]>;
}

/**
 * Answers from an indexer in this process. Numbers are trusted to be in range; names, addresses and
 * cursors are not.
 */
export function createTransferService(
  source: TransferSource,
  { now = Date.now }: { now?: () => number } = {},
): TransferService {
  const service: TransferService = {
    async getHealth() {
      return toHealthBody(await source.readHealth(), now());
    },

    async listChains() {
      const chains = source.chains.map(({ name, tokens }) => ({
        name,
        tokens: tokens.map((token) => token.name),
      }));
      return { chains };
    },

    async getTokenTransfers(query) {
      const { limit } = readHistoryQuery(source, query);
      // One more than requested shows whether there is another page.
      const found = await source.readTransfers({
        ...readHistoryQuery(source, query),
        limit: limit + 1,
      });
      const page = found.slice(0, limit);
      const last = page.at(-1);
      const transfers = page.map(toRecord);
      return found.length > limit && last ? { transfers, next: encodeCursor(last) } : { transfers };
    },

    async getTokenBalances(query) {
      const { blockchain, token, address } = readOwner(source, query);
      const amount = await source.readBalance({ blockchain, token, address });
      return { tokenBalance: { blockchain, token, amount: amount.toString() } };
    },

    async getTransactionTransfers({ txHash, ...name }) {
      const { blockchain, token } = requireServed(source, name);
      const transactionHash = readTransactionHash(txHash);
      const found = await source.readTransactionTransfers({ blockchain, token, transactionHash });
      if (found.length === 0) {
        throw new ApiError(404, `No transfer of ${token} in transaction ${transactionHash}.`);
      }
      return { transfers: found.map(toRecord) };
    },

    batchTokenTransfers: (queries) =>
      answerEach(queries, async (query) => {
        const { transfers } = await service.getTokenTransfers(query);
        return { transfers };
      }),

    batchTokenBalances: (queries) => answerEach(queries, service.getTokenBalances),
  };
  return service;
}

/** Reads a history query. @throws ApiError 400 */
export function readHistoryQuery(
  source: Pick<TransferSource, "chains">,
  query: TransferHistoryQuery,
): TransfersQuery & { after: TransferPlace | undefined } {
  const { limit = usualPage, fromTs = 0, toTs, sort = "desc", cursor } = query;
  const owner = readOwner(source, query);
  const fromMs = toMilliseconds(fromTs);
  const toMs = toTs === undefined ? undefined : toMilliseconds(toTs);
  if (toMs !== undefined && fromMs > toMs) {
    throw badRequest(`fromTs: is after toTs (${fromMs} and ${toMs} milliseconds)`);
  }
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  return { ...owner, limit, fromMs, toMs, sort, after };
}

/** Reads chain, token and address. @throws ApiError 400 */
export function readOwner(
  source: Pick<TransferSource, "chains">,
  { blockchain, token, address }: BalanceQuery,
): TokenName & { address: Address } {
  return { ...requireServed(source, { blockchain, token }), address: readAddress(address) };
}

/** @throws ApiError 400 that names the served chains and tokens */
function requireServed(
  { chains }: Pick<TransferSource, "chains">,
  { blockchain, token }: TokenName,
): TokenName {
  const chain = chains.find(({ name }) => name === blockchain);
  if (chain === undefined) {
    throw badRequest(
      `blockchain: ${quote(blockchain)} is not served; there are ${namesOf(chains)}`,
    );
  }
  if (!chain.tokens.some(({ name }) => name === token)) {
    throw badRequest(
      `token: ${quote(token)} is not served on ${blockchain}; there are ${namesOf(chain.tokens)}`,
    );
  }
  return { blockchain, token };
}

function namesOf(named: readonly { name: string }[]): string {
  return named.map(({ name }) => name).join(", ");
}

/** A caller's text, cut to a length fit for a message. */
function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function readAddress(text: string): Address {
  const address = text.toLowerCase();
  if (isHex(address, 40)) return address;
  throw badRequest(`address: ${quote(text)} is not an EVM address, 0x and 40 hexadecimal digits`);
}

function readTransactionHash(text: string): Hash {
  const hash = text.toLowerCase();
  if (isHex(hash, 64)) return hash;
  throw badRequest(
    `txHash: ${quote(text)} is not a transaction hash, 0x and 64 hexadecimal digits`,
  );
}

function isHex(text: string, digits: number): text is `0x${string}` {
  return text.length === digits + 2 && /^0x[0-9a-f]+$/.test(text);
}

/** Answers in order. A refused item becomes its error; an internal fault fails all of them. */
function answerEach<Query, Answer>(
  queries: readonly Query[],
  answer: (query: Query) => Promise<Answer>,
): Promise<(Answer | ErrorBody)[]> {
  return Promise.all(
    queries.map((query) =>
      answer(query).catch((error: unknown) => {
        if (error instanceof ApiError && error.status < 500) return error.toBody();
        throw error;
      }),
    ),
  );
}

/** A transfer as it is on the wire. */
export function toRecord({ amount, ...transfer }: IndexedTransfer): TransferRecord {
  return { ...transfer, amount: amount.toString() };
}

function toHealthBody(
  { status, isDatabaseHealthy, tokens }: SourceHealth,
  now: number,
): HealthBody {
  const word = (isHealthy: boolean) => (isHealthy ? "healthy" : "unhealthy");
  const database = { status: word(isDatabaseHealthy) } as const;
  const indexers = tokens.map(({ blockchain, token, isHealthy, ...facts }) => [
    `${blockchain}:${token}`,
    {
      status: word(isHealthy),
      ...(facts.rpcLatencyMs !== undefined && { rpcLatencyMs: facts.rpcLatencyMs }),
      ...(facts.lag !== undefined && { lag: facts.lag }),
      ...(facts.indexedTo !== undefined && { indexedTo: facts.indexedTo }),
      ...(facts.verifiedTo !== undefined && { verifiedTo: facts.verifiedTo }),
      db: database,
    },
  ]);
  const healthy = tokens.filter(({ isHealthy }) => isHealthy).length;
  return {
    status,
    timestamp: new Date(now).toISOString(),
    summary: { healthy, unhealthy: tokens.length - healthy, total: tokens.length },
    checks: { database, indexers: Object.fromEntries(indexers) },
  };
}
