import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, listen } from "@coinslot/devnet";
import { openDatabase } from "@coinslot/storage";
import express5 from "express";
import supertest from "supertest";
import { expect, onTestFinished } from "vitest";
import * as z from "zod";
import { silentLogger } from "../../logger.ts";
import type { IndexerSchema } from "../../store/schema.ts";
import { openKeyStore } from "../api-stores.ts";
import { answerNotFound, createErrorHandler } from "../error-answer.ts";
import type { KeyStore, KeyWish } from "../keys/key-store.ts";
import { mountTransferApi, type TransferApiOptions } from "../transfer-api.ts";
import type { OwnedReceiver } from "../webhook-operations.ts";
import { createContract } from "./contract.ts";
import { createTestSource, type TestSource } from "./test-source.ts";

const express4: typeof express5 = createRequire(import.meta.url)("express4");

/** The API's test matrix: both engines, and both versions of Express. */
export const stands = [
  { engine: "sqlite", expressVersion: 5 },
  { engine: "postgres", expressVersion: 4 },
] as const;

export interface Stand {
  engine: "sqlite" | "postgres";
  expressVersion: 4 | 5;
}

const verbs = {
  GET: "get",
  HEAD: "head",
  POST: "post",
  PUT: "put",
  PATCH: "patch",
  DELETE: "delete",
  OPTIONS: "options",
} as const;

/** The request of `call`; without an `x-api-key` among the headers, it has the test's own key. */
export interface TestRequest {
  method?: keyof typeof verbs;
  headers?: Record<string, string>;
  body?: string;
}

/** An answer whose shape was checked against the OpenAPI document. */
export interface TestAnswer {
  status: number;
  headers: Headers;
  body: unknown;
}

export interface TestApi {
  url: string;
  source: TestSource;
  keys: KeyStore;
  /** A key with limits that no test reaches by accident. */
  key: string;
  createKey(wish?: Partial<KeyWish>): Promise<string>;
  /** Requests with `key` by default, and checks the answer against the document. */
  call(path: string, request?: TestRequest): Promise<TestAnswer>;
  post(path: string, body: unknown, request?: TestRequest): Promise<TestAnswer>;
}

const document = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(z.string(), z.looseObject({ responses: z.record(z.string(), z.looseObject({})) })),
  ),
  components: z.looseObject({ responses: z.record(z.string(), z.looseObject({})) }),
});

/** The URL of an empty database that goes with the test. */
export async function createDatabaseUrl(engine: Stand["engine"]): Promise<string> {
  if (engine === "postgres") {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    return url;
  }
  const directory = await mkdtemp(join(tmpdir(), "coinslot-indexer-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return `sqlite:${join(directory, "test.db")}`;
}

/** Serves the API over real HTTP until the test ends. */
export async function startApi(
  { engine, expressVersion }: Stand,
  options: TransferApiOptions & {
    databaseUrl?: string;
    receivers?: readonly OwnedReceiver[];
  } = {},
): Promise<TestApi> {
  const url = options.databaseUrl ?? (await createDatabaseUrl(engine));
  const database = await openDatabase<IndexerSchema>({ url });
  onTestFinished(() => database.close());
  const source = createTestSource(database, options.receivers);
  const keys = await openKeyStore(database);

  const express = expressVersion === 4 ? express4 : express5;
  const app = express();
  const router = express.Router();
  mountTransferApi(router, express.json, source, options);
  app.use(router);
  app.use(answerNotFound);
  app.use(createErrorHandler(silentLogger));
  const { url: base, close } = await listen(app);
  onTestFinished(close);

  const createKey = async (wish: Partial<KeyWish> = {}) =>
    (await keys.create({ owner: "tests", ...wish })).key;
  const key = await createKey({ limit: { max: 1_000_000, windowMs: 1_000 } });
  const described = document.parse((await supertest(base).get("/openapi.json")).body);
  const check = createContract(described);

  async function call(path: string, sent: TestRequest = {}): Promise<TestAnswer> {
    const { method = "GET", body: text, headers: { ...headers } = {} } = sent;
    headers["x-api-key"] ??= key;
    if (headers["x-api-key"] === "") delete headers["x-api-key"];
    const request = supertest(base)[verbs[method]](path).set(headers);
    const response = await (text === undefined ? request : request.send(text));
    const { status } = response;
    const contentType = response.headers["content-type"] ?? null;
    const isJson = response.text && contentType?.startsWith("application/json");
    const body: unknown = isJson ? response.body : (response.text ?? "");
    const [bare = ""] = path.split("?");
    if (method !== "HEAD") {
      expect(check({ method, path: bare, status, contentType, body })).toBeUndefined();
    }
    return { status, headers: new Headers(response.headers), body };
  }

  return {
    url: base,
    source,
    keys,
    key,
    createKey,
    call,
    post: (path, body, { headers } = {}) =>
      call(path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        headers: { "content-type": "application/json", ...headers },
      }),
  };
}
