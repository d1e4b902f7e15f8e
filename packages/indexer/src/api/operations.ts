import * as z from "zod";
import type { Limit } from "./limits/limit.ts";
import { balanceBody } from "./wire/balance.ts";
import { chainsBody } from "./wire/chains.ts";
import { documented } from "./wire/documentation.ts";
import { errorBody } from "./wire/error.ts";
import { healthBody } from "./wire/health.ts";
import { keyCreatedBody, keyListBody, keyRequest, keyRevokedBody } from "./wire/key.ts";
import { addressText, blockchainName, tokenName } from "./wire/names.ts";
import { transfersBody } from "./wire/transfer.ts";
import {
  balanceQuery,
  batchOf,
  transferQuery,
  transfersQueryString,
} from "./wire/transfer-query.ts";
import {
  deadListBody,
  deadQuery,
  receiverParams,
  replayedBody,
  replayRequest,
  watchedChangeBody,
  watchedChangeRequest,
  watchedListBody,
  watchedQuery,
  webhookListBody,
  webhookTestBody,
} from "./wire/webhook.ts";

/**
 * One operation of the API, with the schemas that check its requests and describe its answers. The
 * router, the limits and the OpenAPI document are all made from these.
 */
export interface Operation {
  method: "get" | "post" | "patch" | "delete";
  /** Under /api/v1, with parameters in braces. */
  path: string;
  tag: "Health" | "Chains" | "Token Transfers" | "Token Balances" | "API Keys" | "Webhooks";
  summary: string;
  description?: string;
  limit: Limit;
  /** True if it needs no key under `authStatus: "live"`. */
  isOpenWhenLive?: boolean;
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** The body of a 200. */
  answer: z.ZodType;
  /** Further answers that are no errors, by status. */
  otherAnswers?: Readonly<Record<number, { description: string; schema: z.ZodType }>>;
  /** Errors beside those that every operation has. */
  errors?: readonly (400 | 404 | 413 | 415)[];
}

/** Prefix of all operations; the version is part of the path. */
export const apiPrefix = "/api/v1";

const perHour = (max: number): Limit => ({ max, windowMs: 3_600_000 });
const perMinute = (max: number): Limit => ({ max, windowMs: 60_000 });
const perTenSeconds = (max: number): Limit => ({ max, windowMs: 10_000 });

const addressParams = z.object({
  blockchain: blockchainName,
  token: tokenName,
  address: addressText,
});

/** Every operation, by its id. */
export const operations = {
  getHealth: {
    method: "get",
    path: "/health",
    tag: "Health",
    summary: "The state of the service, and of each chain and token.",
    limit: perHour(10),
    isOpenWhenLive: true,
    answer: healthBody,
    otherAnswers: { 503: { description: "Degraded or unhealthy.", schema: healthBody } },
  },
  listChains: {
    method: "get",
    path: "/chains",
    tag: "Chains",
    summary: "The blockchains that are served, and their tokens.",
    limit: perMinute(60),
    isOpenWhenLive: true,
    answer: chainsBody,
  },
  getTokenTransfers: {
    method: "get",
    path: "/{blockchain}/{token}/{address}/token-transfers",
    tag: "Token Transfers",
    summary: "Transfers of one token into and out of one address.",
    description: [
      'The next page, if there is one, is in the header `Link: <…>; rel="next"`.',
      "With `Accept: text/csv` all of them come as one CSV file, unless `limit` is set.",
      "With `Accept: text/event-stream` new ones come as they happen: events `transfer`, and `retraction` where a",
      "block was replaced; `Last-Event-ID` resumes, and an event `gap` means that too many events have passed.",
    ].join("\n"),
    limit: perTenSeconds(8),
    params: addressParams,
    query: transfersQueryString,
    answer: transfersBody,
    errors: [400],
  },
  getTokenBalances: {
    method: "get",
    path: "/{blockchain}/{token}/{address}/token-balances",
    tag: "Token Balances",
    summary: "Current balance of one token at one address.",
    limit: perTenSeconds(4),
    params: addressParams,
    answer: balanceBody,
    errors: [400],
  },
  getTransactionTransfers: {
    method: "get",
    path: "/blockchains/{blockchain}/{token}/token-transfers/{txHash}",
    tag: "Token Transfers",
    summary: "Transfers of one token in one transaction.",
    limit: perTenSeconds(8),
    params: z.object({
      blockchain: blockchainName,
      token: tokenName,
      txHash: documented(z.string().min(1).max(255), {
        description: "The hash of the transaction, in any letter case.",
      }),
    }),
    answer: transfersBody,
    errors: [400, 404],
  },
  batchTokenTransfers: {
    method: "post",
    path: "/batch/token-transfers",
    tag: "Token Transfers",
    summary: "Up to ten transfer histories in one request.",
    description:
      "Answered in order. An item that fails is an error in its place, and the status is still 200.",
    limit: perTenSeconds(8),
    body: batchOf(transferQuery),
    answer: batchOf(z.union([transfersBody, errorBody])),
    errors: [400, 413, 415],
  },
  batchTokenBalances: {
    method: "post",
    path: "/batch/token-balances",
    tag: "Token Balances",
    summary: "Up to ten balances in one request.",
    description:
      "Answered in order. An item that fails is an error in its place, and the status is still 200.",
    limit: perTenSeconds(4),
    body: batchOf(balanceQuery),
    answer: batchOf(z.union([balanceBody, errorBody])),
    errors: [400, 413, 415],
  },
  listApiKeys: {
    method: "get",
    path: "/keys",
    tag: "API Keys",
    summary: "The keys of the caller's owner.",
    limit: perMinute(60),
    answer: keyListBody,
  },
  createApiKey: {
    method: "post",
    path: "/keys",
    tag: "API Keys",
    summary: "Another key for the caller's owner.",
    description: "It has the usual limits, and does not outlive the key that created it.",
    limit: perMinute(60),
    body: keyRequest,
    answer: keyCreatedBody,
    errors: [400, 413, 415],
  },
  deleteApiKey: {
    method: "delete",
    path: "/keys/{hashedKey}",
    tag: "API Keys",
    summary: "Revokes one of the owner's keys.",
    limit: perMinute(60),
    params: z.object({ hashedKey: z.string().min(1) }),
    answer: keyRevokedBody,
    errors: [404],
  },
  listWebhooks: {
    method: "get",
    path: "/webhooks",
    tag: "Webhooks",
    summary: "The receivers of the caller's owner, and how they stand.",
    description: "Receivers are settings of the service. Each may have an owner.",
    limit: perMinute(60),
    answer: webhookListBody,
  },
  listWatchedAddresses: {
    method: "get",
    path: "/webhooks/{receiver}/addresses",
    tag: "Webhooks",
    summary: "A page of the addresses that a receiver hears about.",
    description: 'The next page, if there may be one, is in the header `Link: <…>; rel="next"`.',
    limit: perTenSeconds(50),
    params: receiverParams,
    query: watchedQuery,
    answer: watchedListBody,
    errors: [400, 404],
  },
  changeWatchedAddresses: {
    method: "patch",
    path: "/webhooks/{receiver}/addresses",
    tag: "Webhooks",
    summary: "Adds and removes addresses of a receiver: all of a request, or nothing.",
    description:
      "A receiver watches up to 100,000 addresses, from the next block on. A repetition changes nothing.",
    limit: perTenSeconds(50),
    params: receiverParams,
    body: watchedChangeRequest,
    answer: watchedChangeBody,
    errors: [400, 404, 413, 415],
  },
  listDeadWebhooks: {
    method: "get",
    path: "/webhooks/{receiver}/dead",
    tag: "Webhooks",
    summary: "Events whose every attempt has failed, the last ones first.",
    description: 'The next page, if there may be one, is in the header `Link: <…>; rel="next"`.',
    limit: perMinute(60),
    params: receiverParams,
    query: deadQuery,
    answer: deadListBody,
    errors: [400, 404],
  },
  replayWebhooks: {
    method: "post",
    path: "/webhooks/{receiver}/replay",
    tag: "Webhooks",
    summary: "Delivers events again, with the same ids: of a time, one, or the dead ones.",
    limit: perMinute(10),
    params: receiverParams,
    body: replayRequest,
    answer: replayedBody,
    errors: [400, 404, 413, 415],
  },
  testWebhook: {
    method: "post",
    path: "/webhooks/{receiver}/test",
    tag: "Webhooks",
    summary: "Sends the event webhook.test to a receiver.",
    limit: perMinute(10),
    params: receiverParams,
    answer: webhookTestBody,
    errors: [400, 404],
  },
} as const satisfies Record<string, Operation>;

export type OperationId = keyof typeof operations;

/** Whether an operation is about the caller's own: it exists only where keys are required. */
export function needsOwner({ tag }: Pick<Operation, "tag">): boolean {
  return tag === "API Keys" || tag === "Webhooks";
}
