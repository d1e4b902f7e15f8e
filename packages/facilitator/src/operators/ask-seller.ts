import { type IncomingMessage, type RequestOptions, request as requestByHttp } from "node:http";
import { request as requestByHttps } from "node:https";
import type * as z from "zod";
import * as zod from "zod";
import { type CallerWords, callerHeaders } from "./caller-headers.ts";
import type { Operation } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";
import { operatorSocketOf, shortenSocket } from "./operator-socket.ts";

const defaultTimeoutMs = 15_000;
const maxAnswerBytes = 4 * 2 ** 20;
const refusalSchema = zod.object({ message: zod.string(), code: zod.string().optional() });

type Asked<Argument extends z.ZodType, Result extends z.ZodType> = Pick<
  Operation<Argument, Result>,
  "name" | "result" | "timeoutMs"
>;

interface AskOptions extends CallerWords {
  timeoutMs?: number;
}

interface Answered {
  status: number | undefined;
  body: string;
}

/** Address and key of a seller that serves its operator over HTTP. */
export interface OperatorEndpoint {
  /** `https://…`, or `http://` on this machine. */
  url: string;
  key: string;
}

/**
 * Hands an operation over to the process that holds a SQLite ledger.
 *
 * @returns `undefined` where no process listens, or where it ends before its answer is out. It may
 * have made the change, which can be made again.
 * @throws OperationRefusedError in the seller's words where it refuses, Error where it cannot do
 * it, or does not answer in time
 */
export async function askSeller<Argument extends z.ZodType, Result extends z.ZodType>(
  url: string,
  operation: Asked<Argument, Result>,
  argument: z.input<Argument>,
  { timeoutMs = operation.timeoutMs ?? defaultTimeoutMs, ...words }: AskOptions = {},
): Promise<z.output<Result> | undefined> {
  const socket = operatorSocketOf(url);
  if (socket === undefined) return undefined;
  try {
    const answer = await post({
      options: {
        socketPath: shortenSocket(socket),
        path: `/${operation.name}`,
        headers: callerHeaders(words),
      },
      body: JSON.stringify(argument),
      timeoutMs,
    });
    return readAnswer(operation.result, answer);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * Has an operation done by a seller over HTTP.
 *
 * @throws as `askSeller`, also where no process answers
 */
export async function askSellerOverHttp<Argument extends z.ZodType, Result extends z.ZodType>(
  { url, key }: OperatorEndpoint,
  operation: Asked<Argument, Result>,
  argument: z.input<Argument>,
  { timeoutMs = operation.timeoutMs ?? defaultTimeoutMs, ...words }: AskOptions = {},
): Promise<z.output<Result>> {
  const target = new URL(operation.name, url.endsWith("/") ? url : `${url}/`);
  if (target.protocol !== "https:" && !isLoopback(target)) {
    throw new TypeError(
      "The operator's key goes over https:// alone, or over http:// to this machine",
    );
  }
  const { protocol, hostname, port, pathname } = target;
  const answer = await post({
    // A URL's host has brackets around an IPv6 address, which no socket takes.
    options: {
      protocol,
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port,
      path: pathname,
      headers: { ...callerHeaders(words), Authorization: `Bearer ${key}` },
    },
    body: JSON.stringify(argument),
    timeoutMs,
  });
  return readAnswer(operation.result, answer);
}

function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
}

function readAnswer<Result extends z.ZodType>(
  result: Result,
  { status = 0, body }: Answered,
): z.output<Result> {
  if (status === 200) return parse(result, body);
  const { message, code } = parse(refusalSchema, body);
  throw status >= 400 && status < 500
    ? new OperationRefusedError(code ?? "refused", message)
    : new Error(message);
}

function parse<Schema extends z.ZodType>(schema: Schema, body: string): z.output<Schema> {
  try {
    return schema.parse(JSON.parse(body));
  } catch (cause) {
    throw new Error("The seller's answer is malformed", { cause });
  }
}

function post({
  options,
  body,
  timeoutMs,
}: {
  options: RequestOptions;
  body: string;
  timeoutMs: number;
}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const request = options.protocol === "https:" ? requestByHttps : requestByHttp;
    const asking = request(
      {
        ...options,
        method: "POST",
        agent: false,
        headers: { "Content-Type": "application/json", ...options.headers },
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        readBody(response).then(
          (answer) => resolve({ status: response.statusCode, body: answer }),
          fail,
        );
      },
    );
    asking.on("error", fail);
    asking.end(body);

    function fail(cause: unknown): void {
      reject(new UnansweredError(cause));
    }
  });
}

/** No whole answer has come. */
class UnansweredError extends Error {
  override readonly name = "UnansweredError";

  constructor(cause: unknown) {
    super(
      isGone({ cause })
        ? "No seller answers there: does it run, and serve its operator?"
        : "The seller did not answer: is it frozen?",
      { cause },
    );
  }
}

/** Reads no more than an answer can have. A cut one does not parse. */
async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response) {
    if (!(chunk instanceof Uint8Array)) break;
    size += chunk.length;
    if (size > maxAnswerBytes) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** No socket, one that a dead process has left, or a seller that ends. */
const goneCodes: readonly unknown[] = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"];

function isGone(error: unknown): boolean {
  if (!(typeof error === "object" && error !== null && "cause" in error)) return false;
  const { cause } = error;
  return cause instanceof Error && "code" in cause && goneCodes.includes(cause.code);
}
