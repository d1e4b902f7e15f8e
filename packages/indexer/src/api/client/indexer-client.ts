import { sleep, systemClock } from "@coinslot/chain";
import * as z from "zod";
import { ApiError } from "../api-error.ts";
import { apiPrefix } from "../operations.ts";
import type { TransferHistoryQuery, TransferPage, TransferService } from "../transfer-service.ts";
import { balanceBody } from "../wire/balance.ts";
import { chainsBody } from "../wire/chains.ts";
import { errorBody } from "../wire/error.ts";
import { healthBody } from "../wire/health.ts";
import {
  type KeyCreated,
  type KeyInfo,
  type KeyRequest,
  keyCreatedBody,
  keyListBody,
  keyRevokedBody,
} from "../wire/key.ts";
import { type TransferRecord, transfersBody } from "../wire/transfer.ts";
import { type BalanceQuery, maxPage } from "../wire/transfer-query.ts";
import {
  type ReplayRequest,
  replayedBody,
  type WatchedChangeBody,
  type WatchedChangeRequest,
  type WebhookList,
  watchedChangeBody,
  watchedListBody,
  webhookListBody,
  webhookTestBody,
} from "../wire/webhook.ts";
import { createRequester, readAnswer } from "./request-json.ts";
import { type WatchedEvent, type WatchOptions, watchTransfers } from "./watch-transfers.ts";

export interface IndexerClientOptions {
  /** URL of the service, without `/api/v1`, such as `http://localhost:8080`. */
  url: string;
  /** Sent as `x-api-key`. */
  apiKey?: string | undefined;
  /** Milliseconds until a request is given up. Default 30,000. Streams are not given up. */
  timeoutMs?: number;
  fetch?: typeof fetch;
}

/**
 * An indexing service over HTTP. A refusal is an `ApiError`, with `status`, `retryable` and, after
 * a 429, `retryAfterSeconds`. A missing answer is an `ApiUnreachableError`.
 */
export interface IndexerClient extends TransferService {
  /** Walks all pages, in the order of `sort`; waits where a limit is exceeded. */
  allTokenTransfers(
    query: Omit<TransferHistoryQuery, "limit" | "cursor">,
    options?: { signal?: AbortSignal },
  ): AsyncGenerator<TransferRecord>;
  /**
   * New transfers as they happen, and retractions; resumes by itself where the connection is lost.
   */
  watchTokenTransfers(query: BalanceQuery, options?: WatchOptions): AsyncGenerator<WatchedEvent>;
  listApiKeys(): Promise<{ keys: KeyInfo[] }>;
  createApiKey(wish?: KeyRequest): Promise<KeyCreated>;
  deleteApiKey(hashedKey: string): Promise<{ success: boolean }>;
  /** The receivers of webhooks of the key's owner, and how they stand. */
  listWebhooks(): Promise<WebhookList>;
  /** All addresses that a receiver hears about, in their order; waits where a limit is exceeded. */
  allWatchedAddresses(receiver: string): AsyncGenerator<string>;
  /** Removes addresses, then adds others: all of it, or nothing. At most 1,000 together. */
  changeWatchedAddresses(receiver: string, wish: WatchedChangeRequest): Promise<WatchedChangeBody>;
  /** Delivers events again, with the same ids. */
  replayWebhooks(receiver: string, wish: ReplayRequest): Promise<{ replayed: number }>;
  /** Sends `webhook.test`. */
  testWebhook(receiver: string): Promise<{ success: boolean }>;
}

const transferResults = z.array(z.union([transfersBody, errorBody]));
const balanceResults = z.array(z.union([balanceBody, errorBody]));

/**
 * Creates a typed client of the indexing service. Every answer is checked against its schema.
 *
 * A refusal rejects with an `ApiError`; a missing or foreign answer with an `ApiUnreachableError`.
 *
 * @example
 * ```ts
 * const client = createIndexerClient({
 *   url: "http://localhost:8080",
 *   apiKey: process.env.API_KEY,
 * });
 * const address = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";
 * const owner = { blockchain: "plasma", token: "usdt", address };
 *
 * const { tokenBalance } = await client.getTokenBalances(owner);
 * for await (const transfer of client.allTokenTransfers(owner)) console.log(transfer.amount);
 * for await (const event of client.watchTokenTransfers(owner)) console.log(event.type, event.id);
 * ```
 */
export function createIndexerClient(options: IndexerClientOptions): IndexerClient {
  const { url, apiKey, timeoutMs = 30_000, fetch: send = fetch } = options;
  const requester = createRequester({ url, apiKey, fetch: send });

  async function request<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    { method = "GET", body }: { method?: string; body?: unknown } = {},
  ): Promise<z.output<Schema>> {
    return readAnswer(await requestRaw(path, { method, body }), schema);
  }

  function requestRaw(path: string, { method, body }: { method: string; body?: unknown }) {
    return requester.send(`${apiPrefix}${path}`, {
      method,
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
  }

  const client: IndexerClient = {
    getHealth: () => request(healthBody, "/health"),
    listChains: () => request(chainsBody, "/chains"),

    async getTokenTransfers({
      limit,
      fromTs,
      toTs,
      sort,
      cursor,
      ...owner
    }): Promise<TransferPage> {
      const search = writeQuery({ limit, fromTs, toTs, sort, cursor });
      const response = await requestRaw(`${historyPath(owner)}${search}`, { method: "GET" });
      const { transfers } = await readAnswer(response, transfersBody);
      const next = readNextCursor(response.headers.get("link"));
      return next === undefined ? { transfers } : { transfers, next };
    },

    getTokenBalances: ({ blockchain, token, address }) =>
      request(balanceBody, writePath`/${blockchain}/${token}/${address}/token-balances`),
    getTransactionTransfers: ({ blockchain, token, txHash }) =>
      request(
        transfersBody,
        writePath`/blockchains/${blockchain}/${token}/token-transfers/${txHash}`,
      ),
    batchTokenTransfers: (body) =>
      request(transferResults, "/batch/token-transfers", { method: "POST", body }),
    batchTokenBalances: (body) =>
      request(balanceResults, "/batch/token-balances", { method: "POST", body }),

    async *allTokenTransfers(query, { signal } = {}) {
      let cursor: string | undefined;
      do {
        const page = { ...query, limit: maxPage, cursor };
        const { transfers, next } = await waitingForLimits(
          () => client.getTokenTransfers(page),
          signal,
        );
        yield* transfers;
        cursor = next;
      } while (cursor !== undefined);
    },

    watchTokenTransfers: (owner, watch = {}) =>
      watchTransfers(requester, `${apiPrefix}${historyPath(owner)}`, watch),

    listApiKeys: () => request(keyListBody, "/keys"),
    createApiKey: (body = {}) => request(keyCreatedBody, "/keys", { method: "POST", body }),
    deleteApiKey: (hashedKey) =>
      request(keyRevokedBody, writePath`/keys/${hashedKey}`, { method: "DELETE" }),

    listWebhooks: () => request(webhookListBody, "/webhooks"),

    async *allWatchedAddresses(receiver) {
      const path = writePath`/webhooks/${receiver}/addresses`;
      let after: string | undefined;
      do {
        const page = `${path}${writeQuery({ after })}`;
        const { addresses } = await waitingForLimits(
          () => request(watchedListBody, page),
          undefined,
        );
        yield* addresses;
        after = addresses.at(-1);
      } while (after !== undefined);
    },

    changeWatchedAddresses: (receiver, body) =>
      request(watchedChangeBody, writePath`/webhooks/${receiver}/addresses`, {
        method: "PATCH",
        body,
      }),
    replayWebhooks: (receiver, body) =>
      request(replayedBody, writePath`/webhooks/${receiver}/replay`, { method: "POST", body }),
    testWebhook: (receiver) =>
      request(webhookTestBody, writePath`/webhooks/${receiver}/test`, { method: "POST" }),
  };
  return client;
}

/** A path whose values are percent-encoded. */
function writePath(texts: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: texts }, ...values.map(encodeURIComponent));
}

function historyPath({ blockchain, token, address }: BalanceQuery): string {
  return writePath`/${blockchain}/${token}/${address}/token-transfers`;
}

function writeQuery(values: Record<string, string | number | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) search.set(name, String(value));
  }
  return search.size === 0 ? "" : `?${search}`;
}

/** The cursor in a Link header (RFC 8288) whose relation is `next`. */
function readNextCursor(link: string | null): string | undefined {
  const target = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(link ?? "")?.[1];
  if (target === undefined) return undefined;
  return new URL(target, "http://localhost").searchParams.get("cursor") ?? undefined;
}

async function waitingForLimits<Result>(
  action: () => Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await action();
    } catch (error) {
      const seconds = error instanceof ApiError ? error.retryAfterSeconds : undefined;
      if (!(error instanceof ApiError) || error.status !== 429 || seconds === undefined)
        throw error;
      await sleep(systemClock, seconds * 1_000, signal);
    }
  }
}
