import type { Request, RequestHandler, Response } from "express";
import type * as z from "zod";
import type { Caller } from "./access.ts";
import { answerCsv } from "./answer-csv.ts";
import type { ApiStores } from "./api-stores.ts";
import { answerEvents } from "./event-stream/answer-events.ts";
import { createApiKey, deleteApiKey, listApiKeys } from "./key-operations.ts";
import type { StoredKey } from "./keys/key-store.ts";
import type { CallerRoom } from "./limits/caller-room.ts";
import { cutStalled } from "./limits/cut-stalled.ts";
import { type OperationId, operations } from "./operations.ts";
import { readQueryString } from "./query-string.ts";
import { readInput } from "./read-input.ts";
import { readJsonBody } from "./read-json-body.ts";
import { readHistoryQuery, readOwner, type TransferService } from "./transfer-service.ts";
import type { TransferSource } from "./transfer-source.ts";

/** Context of the handlers. */
export interface HandlerContext {
  source: TransferSource;
  service: TransferService;
  stores: () => Promise<ApiStores>;
  streamRoom: CallerRoom;
  exportRoom: CallerRoom;
  heartbeatMs: number;
  stallMs: number;
  signal: AbortSignal | undefined;
  now: () => number;
  /** Express' parser of JSON bodies. */
  parseJson: RequestHandler;
}

/** An admitted request. */
export interface Call {
  request: Request;
  response: Response;
  caller: Caller;
}

/**
 * The handler of each operation. It returns the body of a 200, or nothing if it has written its
 * answer itself.
 */
export type Handlers = {
  [Id in OperationId]: (
    call: Call,
  ) => Promise<z.input<(typeof operations)[Id]["answer"]> | undefined>;
};

/** Creates the handlers of all operations. */
export function createHandlers(context: HandlerContext): Handlers {
  const { source, service, stores, streamRoom, exportRoom, parseJson, now } = context;
  const { heartbeatMs, stallMs, signal } = context;

  async function readBody<Schema extends z.ZodType>(schema: Schema, { request, response }: Call) {
    return readInput(schema, await readJsonBody(request, response, parseJson), "body");
  }

  return {
    async getHealth({ response }) {
      const health = await service.getHealth();
      if (health.status !== "healthy") response.status(503);
      return health;
    },

    listChains: () => service.listChains(),

    async getTokenTransfers({ request, response, caller }) {
      const params = readParams(operations.getTokenTransfers.params, request);
      const query = readQuery(operations.getTokenTransfers.query, request);
      response.vary("Accept");
      const wanted = request.accepts(["application/json", "text/csv", "text/event-stream"]);
      // HEAD returns the headers of a GET without its body: for a stream those of JSON.
      const format = request.method === "HEAD" ? "application/json" : wanted;
      if (format === "text/event-stream") {
        const owner = readOwner(source, params);
        const leave = streamRoom.enter(caller);
        cutStalled(response, stallMs);
        const { isStillWelcome } = caller;
        await answerEvents(request, response, {
          source,
          owner,
          signal,
          heartbeatMs,
          isStillWelcome,
        }).finally(leave);
        return undefined;
      }
      if (format === "text/csv") {
        const history = readHistoryQuery(source, { ...params, ...query });
        const limit = hasLimit(request) ? query.limit : undefined;
        const leave = exportRoom.enter(caller);
        cutStalled(response, stallMs);
        await answerCsv(response, { source, query: history, limit }).finally(leave);
        return undefined;
      }
      const { transfers, next } = await service.getTokenTransfers({ ...params, ...query });
      if (next !== undefined) response.setHeader("Link", linkToNext(request, next));
      return { transfers };
    },

    async getTokenBalances({ request }) {
      return service.getTokenBalances(readParams(operations.getTokenBalances.params, request));
    },

    async getTransactionTransfers({ request }) {
      const { params } = operations.getTransactionTransfers;
      return service.getTransactionTransfers(readParams(params, request));
    },

    async batchTokenTransfers(call) {
      return service.batchTokenTransfers(await readBody(operations.batchTokenTransfers.body, call));
    },

    async batchTokenBalances(call) {
      return service.batchTokenBalances(await readBody(operations.batchTokenBalances.body, call));
    },

    async listApiKeys({ caller }) {
      return listApiKeys((await stores()).keys, requireOwner(caller));
    },

    async createApiKey(call) {
      const wish = await readBody(operations.createApiKey.body, call);
      const { keys } = await stores();
      return createApiKey(keys, { caller: requireOwner(call.caller), wish, now: now() });
    },

    async deleteApiKey({ request, caller }) {
      const { hashedKey } = readParams(operations.deleteApiKey.params, request);
      const { keys } = await stores();
      return deleteApiKey(keys, { caller: requireOwner(caller), hashedKey });
    },
  };
}

function readParams<Schema extends z.ZodType>(schema: Schema, { params }: Request) {
  return readInput(schema, params, "path");
}

function readQuery<Schema extends z.ZodType>(schema: Schema, { originalUrl }: Request) {
  return readInput(schema, readQueryString(originalUrl), "query");
}

/** The operations on keys exist only where keys are required. */
function requireOwner({ key }: Caller): StoredKey {
  if (key === undefined) throw new Error("An operation on keys was called without one.");
  return key;
}

function hasLimit({ originalUrl }: Request): boolean {
  return new URL(originalUrl, "http://localhost").searchParams.has("limit");
}

/** The same request from the cursor on, as a path, since proxies change the rest (RFC 8288). */
function linkToNext({ originalUrl }: Request, cursor: string): string {
  const { pathname, searchParams } = new URL(originalUrl, "http://localhost");
  searchParams.set("cursor", cursor);
  return `<${pathname}?${searchParams}>; rel="next"`;
}
