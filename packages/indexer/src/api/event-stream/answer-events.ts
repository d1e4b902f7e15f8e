import { createAutoResetEvent } from "@coinslot/concurrency";
import type { Request, Response } from "express";
import type { Address } from "viem";
import type { TokenName, Transfer } from "../../transfer.ts";
import { badRequest } from "../api-error.ts";
import type { TransferSource } from "../transfer-source.ts";
import { encodeEvent } from "./encode-event.ts";

export interface EventStreamOptions {
  source: TransferSource;
  owner: TokenName & { address: Address };
  /** Ends all streams, for a graceful stop. */
  signal: AbortSignal | undefined;
  /**
   * Interval of heartbeats on an idle stream, so that no proxy in between closes the connection.
   */
  heartbeatMs: number;
  /** Checked with each heartbeat: a key that was revoked ends its streams. */
  isStillWelcome: () => Promise<boolean>;
}

const pageSize = 500;
const retryMs = 2_000;

/**
 * Streams the new transfers of an address, and retractions, until the reader leaves. The reader's
 * place is an event number in the database. So nothing is buffered for a slow reader, and it may
 * resume at any process.
 */
export async function answerEvents(
  request: Request,
  response: Response,
  options: EventStreamOptions,
): Promise<void> {
  const { source, owner, signal, heartbeatMs, isStillWelcome } = options;
  const alarm = createAutoResetEvent();
  const newest = await source.readLastEventId();
  const resumed = readLastEventId(request);
  // A number from the future is from another database: the reader has to read the history again.
  const hasLostPlace = resumed !== undefined && resumed > newest;
  let place = hasLostPlace ? newest : (resumed ?? newest);

  const isOver = () => response.destroyed || signal?.aborted === true;

  /** Sends new events; returns whether there may be more. */
  async function sendPage(): Promise<boolean> {
    const page = await source.readEvents({ ...owner, after: place, limit: pageSize });
    if (page.isIncomplete) response.write(encodeEvent({ id: place, event: "gap", data: {} }));
    for (const { id, type, transfer } of page.events) {
      response.write(encodeEvent({ id, event: type, data: toData(transfer) }));
    }
    place = page.lastId;
    return page.events.length === pageSize;
  }

  const stopListening = source.onEvents(alarm.set);
  response.once("close", alarm.set);
  response.on("drain", alarm.set);
  signal?.addEventListener("abort", alarm.set, { once: true });
  try {
    response.setHeader("Content-Type", "text/event-stream; charset=utf-8");
    // Proxies and compressors would delay events that have to arrive now.
    response.setHeader("Cache-Control", "no-store, no-transform");
    response.setHeader("X-Accel-Buffering", "no");
    response.write(encodeEvent({ retryMs, id: place }));
    if (hasLostPlace) response.write(encodeEvent({ id: place, event: "gap", data: {} }));

    let heartbeatAt = performance.now() + heartbeatMs;
    while (!isOver()) {
      if (performance.now() >= heartbeatAt) {
        if (!(await isStillWelcome())) return;
        heartbeatAt = performance.now() + heartbeatMs;
        if (!response.writableNeedDrain) response.write(encodeEvent({ id: place }));
      }
      // Backpressure: a slow reader gets no more until it has taken the buffered part; "drain"
      // sets the alarm then.
      const isMore = !response.writableNeedDrain && (await sendPage());
      if (!isMore) await alarm.wait(heartbeatAt - performance.now());
    }
  } finally {
    stopListening();
    signal?.removeEventListener("abort", alarm.set);
    response.end();
  }
}

/** @throws ApiError 400 */
function readLastEventId(request: Request): number | undefined {
  const text = request.get("last-event-id");
  if (text === undefined || text === "") return undefined;
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  throw badRequest("Last-Event-ID: must be the id of an event of this stream");
}

function toData({ amount, ...transfer }: Transfer) {
  return { ...transfer, amount: amount.toString() };
}
