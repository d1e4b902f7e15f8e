import { onceSuccessful } from "@coinslot/concurrency";
import type { Database } from "@coinslot/storage";
import { type IRouter, json, Router } from "express";
import type { Registry } from "prom-client";
import { type IndexerLogger, silentLogger } from "../logger.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { createKeyAccess, openAccess } from "./access.ts";
import { createApiMetrics } from "./api-metrics.ts";
import { fillRouter } from "./api-router.ts";
import { openApiStores } from "./api-stores.ts";
import { createCallerRoom, type RoomBounds } from "./limits/caller-room.ts";
import type { Limit } from "./limits/limit.ts";
import { createHandlers } from "./operation-handlers.ts";
import { maxBodyBytes } from "./read-json-body.ts";
import { createTransferService } from "./transfer-service.ts";
import type { TransferSource } from "./transfer-source.ts";
import type { OwnedReceiver } from "./webhook-operations.ts";

/** Source of the API's data: an `Indexer` is one. */
export interface ApiSource extends TransferSource {
  /** Database of keys and counted requests, beside the transfers. */
  database(): Promise<Database<IndexerSchema>>;
  /** Receivers of webhooks, for the keys of their owners. Default: none. */
  readonly receivers?: readonly OwnedReceiver[];
}

export interface TransferApiOptions {
  /**
   * `specified` (default): a missing, wrong or expired key is a 401 everywhere. `live`, as the
   * public deployment of this API: 403 for a missing or wrong key, 401 for an expired one. Health
   * and chains need no key then.
   */
  authStatus?: "specified" | "live";
  /**
   * Requires no key and limits no caller. For a router behind a layer with its own access control,
   * such as a payment. There are no operations on keys then. Default false.
   */
  unsafeOpenAccess?: boolean;
  /**
   * Number of wrong keys that an address may present. Default 20 a minute. Behind a proxy, set
   * Express' `trust proxy`.
   */
  failureLimit?: Limit;
  /** Streams of events that may be open at once. Default 200, 10 of one key, 40 of one owner. */
  streams?: RoomBounds;
  /** CSV files that may be read at once. Default 40, 4 of one key, 16 of one owner. */
  exports?: RoomBounds;
  /**
   * Time after which a reader of a stream or file that takes nothing is cut off. Default 60,000,
   * and four heartbeats at least.
   */
  stallMs?: number;
  /** Interval between two heartbeats on a stream without events. Default 15,000. */
  heartbeatMs?: number;
  /** Ends all streams when it fires: for a graceful stop. */
  signal?: AbortSignal;
  logger?: IndexerLogger;
  /** Registry that counts requests. */
  registry?: Registry;
  /** Milliseconds since 1970. */
  now?: () => number;
}

/**
 * The REST API as a router for Express 4 and 5, to be mounted anywhere. It serves `/api/v1/…`,
 * `/openapi.json`, and `/docs`, a page to try the API. It parses bodies itself. Errors under
 * `/api/v1` are always JSON: `{ error, message, status }`.
 *
 * @example
 * ```ts
 * const indexer = createIndexer({
 *   chains: [indexerChain("plasma", { rpcUrls: ["https://rpc.plasma.to"] })],
 * });
 * await indexer.start();
 * express().use(transferApi(indexer)).listen(8080);
 * ```
 */
export function transferApi(indexer: ApiSource, options: TransferApiOptions = {}): Router {
  const router = Router();
  mountTransferApi(router, json, indexer, options);
  return router;
}

/** Mounts the API on a router of any supported Express, with its parser of JSON. */
export function mountTransferApi(
  router: IRouter,
  parser: typeof json,
  indexer: ApiSource,
  options: TransferApiOptions,
): void {
  const { authStatus = "specified", unsafeOpenAccess = false, logger = silentLogger } = options;
  const { failureLimit = { max: 20, windowMs: 60_000 }, now = Date.now, registry } = options;
  const { heartbeatMs = 15_000, stallMs = 60_000 } = options;
  const stores = onceSuccessful(async () =>
    openApiStores({
      database: await indexer.database(),
      now,
      onBackgroundError: (error) => logger.warn({ error }, "old limits were not removed"),
    }),
  );

  fillRouter(router, {
    handlers: createHandlers({
      source: indexer,
      service: createTransferService(indexer, { now }),
      stores,
      receivers: indexer.receivers ?? [],
      streamRoom: createCallerRoom("streams", options.streams ?? { total: 200, perCaller: 10 }),
      exportRoom: createCallerRoom("CSV files", options.exports ?? { total: 40, perCaller: 4 }),
      heartbeatMs,
      stallMs: Math.max(stallMs, 4 * heartbeatMs),
      signal: options.signal,
      now,
      parseJson: parser({ limit: maxBodyBytes, type: () => true, strict: false }),
    }),
    access: unsafeOpenAccess ? openAccess : createKeyAccess({ stores, authStatus, failureLimit }),
    authStatus,
    hasKeys: !unsafeOpenAccess,
    logger,
    metrics: registry && createApiMetrics(registry),
  });
}
