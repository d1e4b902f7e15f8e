import { sleep, systemClock } from "@coinslot/chain";
import { ApiError } from "../api-error.ts";
import { type TransferRecord, transferRecord } from "../wire/transfer.ts";
import { ApiUnreachableError } from "./api-unreachable-error.ts";
import { readEvents } from "./read-events.ts";
import { type Requester, requireSuccess } from "./request-json.ts";

/** A new event at an address. A reader resumes after `id`. */
export type WatchedEvent =
  | { type: "transfer"; id: string; transfer: TransferRecord }
  /** The block of an announced transfer is no longer part of the chain. */
  | { type: "retraction"; id: string; transfer: TransferRecord }
  /** Too many events were missed to be sent: read the history again. */
  | { type: "gap"; id: string };

export interface WatchOptions {
  /** The id of the last seen event. Default: from now on. */
  lastEventId?: string | undefined;
  /** Ends watching. */
  signal?: AbortSignal | undefined;
}

const firstPauseMs = 1_000;
const maxPauseMs = 30_000;

/**
 * Follows a stream of events. After a lost connection it resumes at the same event.
 * @throws ApiError for a lasting refusal, such as a 400 or a 401
 */
export async function* watchTransfers(
  requester: Requester,
  path: string,
  { lastEventId, signal }: WatchOptions,
): AsyncGenerator<WatchedEvent> {
  let place = lastEventId;
  let pauseMs = firstPauseMs;
  const isOver = () => signal?.aborted === true;
  while (!isOver()) {
    let waitMs = firstPauseMs;
    try {
      const response = await requester.send(path, {
        headers: {
          accept: "text/event-stream",
          ...(place !== undefined && { "last-event-id": place }),
        },
        ...(signal && { signal }),
      });
      await requireSuccess(response);
      pauseMs = firstPauseMs;
      for await (const { id, event, data } of readEvents(response.body ?? emptyBody())) {
        place = id ?? place;
        const watched = readWatchedEvent({ id: place ?? "", event, data });
        if (watched !== undefined) yield watched;
      }
    } catch (error) {
      if (isOver()) return;
      if (error instanceof ApiError && !error.retryable) throw error;
      const retryAfterSeconds = error instanceof ApiError ? error.retryAfterSeconds : undefined;
      waitMs = retryAfterSeconds === undefined ? pauseMs : retryAfterSeconds * 1_000;
      pauseMs = Math.min(2 * pauseMs, maxPauseMs);
    }
    await pause(waitMs, signal);
  }
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

function readWatchedEvent(message: {
  id: string;
  event: string;
  data: string;
}): WatchedEvent | undefined {
  const { id, event: type, data } = message;
  if (type === "gap") return { type, id };
  // Kinds of events of a later version are for readers of that version.
  if (type !== "transfer" && type !== "retraction") return undefined;
  const transfer = transferRecord.safeParse(JSON.parse(data));
  if (transfer.success) return { type, id, transfer: transfer.data };
  throw new ApiUnreachableError("An event has not the form that it should have.", {
    cause: transfer.error,
  });
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(systemClock, ms, signal);
  } catch {
    // Aborted: the caller checks the signal.
  }
}
