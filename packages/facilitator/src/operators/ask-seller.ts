import { type IncomingMessage, request } from "node:http";
import * as z from "zod";
import { type StopChange, type StopReport, stopReportSchema } from "../stops/stop.ts";
import { operatorSocketOf, shortenSocket } from "./operator-socket.ts";

const defaultTimeoutMs = 15_000;
const maxAnswerBytes = 4 * 2 ** 20;
const refusalSchema = z.object({ message: z.string() });

/**
 * Hands a change over to the process that holds a SQLite ledger.
 *
 * @returns `undefined` where no process listens, or where it ends before its answer is out. It may
 * have made the change, which can be made again.
 * @throws Error in the seller's words where it refuses, or where it does not answer in time
 */
export async function askSeller(
  url: string,
  change: StopChange,
  { timeoutMs = defaultTimeoutMs }: { timeoutMs?: number } = {},
): Promise<StopReport | undefined> {
  const socket = operatorSocketOf(url);
  if (socket === undefined) return undefined;
  const answer = await post(shortenSocket(socket), JSON.stringify(change), timeoutMs);
  if (answer === undefined) return undefined;
  if (answer.status === 200) return parse(stopReportSchema, answer.body);
  throw new Error(parse(refusalSchema, answer.body).message);
}

function parse<Parsed>(schema: z.ZodType<Parsed>, body: string): Parsed {
  try {
    return schema.parse(JSON.parse(body));
  } catch (cause) {
    throw new Error("The seller's answer is malformed", { cause });
  }
}

function post(
  socketPath: string,
  body: string,
  timeoutMs: number,
): Promise<{ status: number | undefined; body: string } | undefined> {
  return new Promise((resolve, reject) => {
    const asking = request(
      {
        socketPath,
        path: "/stops",
        method: "POST",
        agent: false,
        headers: { "Content-Type": "application/json" },
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        readAnswer(response).then(
          (answer) => resolve({ status: response.statusCode, body: answer }),
          fail,
        );
      },
    );
    asking.on("error", fail);
    asking.end(body);

    function fail(cause: unknown): void {
      if (isGone(cause)) resolve(undefined);
      else reject(new Error("The seller did not answer: is it frozen?", { cause }));
    }
  });
}

/** Reads no more than an answer can have. A cut one does not parse. */
async function readAnswer(response: IncomingMessage): Promise<string> {
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
  return error instanceof Error && "code" in error && goneCodes.includes(error.code);
}
