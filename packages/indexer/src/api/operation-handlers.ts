import type { Request, RequestHandler } from "express";
import type * as z from "zod";
import { answerCsv } from "./answer-csv.ts";
import type { ApiStores } from "./api-stores.ts";
import { type Call, linkToNext, readParams, readQuery, requireOwner } from "./call.ts";
import { answerEvents } from "./event-stream/answer-events.ts";
import { createApiKey, deleteApiKey, listApiKeys } from "./key-operations.ts";
import type { CallerRoom } from "./limits/caller-room.ts";
import { cutStalled } from "./limits/cut-stalled.ts";
import { type OperationId, operations } from "./operations.ts";
import { readInput } from "./read-input.ts";
import { readJsonBody } from "./read-json-body.ts";
import { readHistoryQuery, readOwner, type TransferService } from "./transfer-service.ts";
import type { TransferSource } from "./transfer-source.ts";
import { createWebhookHandlers } from "./webhook-handlers.ts";
import type { OwnedReceiver } from "./webhook-operations.ts";

/** Context of the handlers. */
export interface HandlerContext {
  source: TransferSource;
  service: TransferService;
  stores: () => Promise<ApiStores>;
  receivers: readonly OwnedReceiver[];
  streamRoom: CallerRoom;
  exportRoom: CallerRoom;
  heartbeatMs: number;
  stallMs: number;
  signal: AbortSignal | undefined;
  now: () => number;
  /** Express' parser of JSON bodies. */
  parseJson: RequestHandler;
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
  const { heartbeatMs, stallMs, signal, receivers } = context;

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

    async getTokenTransfers(call) {
      const { request, response, caller } = call;
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
      linkToNext(call, "cursor", next);
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

    ...createWebhookHandlers({ stores, receivers, readBody }),
  };
}

function hasLimit({ originalUrl }: Request): boolean {
  return new URL(originalUrl, "http://localhost").searchParams.has("limit");
}
