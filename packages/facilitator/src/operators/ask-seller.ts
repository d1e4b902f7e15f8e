import { request } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod";
import { type StopChange, type StopReport, stopReportSchema } from "../stops/stop.ts";
import { operatorSocketOf, shortenSocket } from "./operator-socket.ts";

const timeoutMs = 15_000;
const refusalSchema = z.object({ message: z.string() });

/**
 * Hands a change over to the process that holds a SQLite ledger.
 *
 * @returns `undefined` where no process listens
 * @throws Error in the seller's words where it refuses, or where it does not answer in time
 */
export async function askSeller(url: string, change: StopChange): Promise<StopReport | undefined> {
  const socket = operatorSocketOf(url);
  if (socket === undefined) return undefined;
  const answer = await post(shortenSocket(socket), JSON.stringify(change));
  if (answer === undefined) return undefined;
  const json: unknown = JSON.parse(answer.body);
  if (answer.status === 200) return stopReportSchema.parse(json);
  throw new Error(refusalSchema.parse(json).message);
}

function post(
  socketPath: string,
  body: string,
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
        text(response).then(
          (answer) => resolve({ status: response.statusCode, body: answer }),
          reject,
        );
      },
    );
    asking.once("error", (error) => {
      if (isAbsent(error)) resolve(undefined);
      else reject(new Error("The seller did not answer: is it frozen?", { cause: error }));
    });
    asking.end(body);
  });
}

/** No socket, or one that a dead process has left. */
function isAbsent(error: Error): boolean {
  return "code" in error && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
}
