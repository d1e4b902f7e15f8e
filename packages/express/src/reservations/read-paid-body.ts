import { refuseVisit } from "../answer.ts";
import { holdBytes, leavePlace, type Place, takePlace } from "../load/load.ts";
import * as refusals from "../refusals.ts";
import type { PooledBody } from "../replay/body-pool.ts";
import { isBodyUnread, readRequestBody } from "../replay/request-body.ts";
import type { Visit } from "../sale.ts";

/** A request with a payment, before anything is reserved for it. */
type PayingVisit = Visit & { place: Place; limitKey: string };

type Read = Awaited<ReturnType<typeof readRequestBody>>;

/** Result of the reading. */
export type ReadPaidBody =
  /** The request has been answered, or its buyer has left. */
  | { state: "answered" }
  /** The process has no place for it any more. */
  | { state: "overloaded" }
  | {
      state: "read";
      body: Extract<Read, { state: "known" | "unknown" }>;
      /** The pool holds bytes for it, until `close`. */
      holdsBody: boolean;
      close(): void;
    };

/** Reads the body of a request whose payment is not proven yet, within its client's share. */
export async function readPaidBody(visit: PayingVisit): Promise<ReadPaidBody> {
  const { request, settings, load, place } = visit;
  let pooled: PooledBody | undefined;
  const close = () => pooled?.close();
  // A body comes as slowly as its buyer likes.
  if (isBodyUnread(request)) leavePlace(load, place);
  let body: Read;
  try {
    body = await readRequestBody(request, {
      maxRequestBytes: settings.maxRequestBytes,
      open(onDrop) {
        pooled = openBody(visit, onDrop);
        return pooled;
      },
    });
  } catch (error) {
    close();
    throw error;
  }
  switch (body.state) {
    case "known":
    case "unknown": {
      holdBytes(load, place, body.state === "known" ? body.bytes : 0);
      if (takePlace(load, place, settings)) {
        return { state: "read", body, holdsBody: pooled !== undefined, close };
      }
      close();
      return { state: "overloaded" };
    }
    case "aborted":
      close();
      return { state: "answered" };
    case "dropped":
      close();
      refuseVisit(visit, refusals.bodyDropped);
      return { state: "answered" };
    case "too_large":
      close();
      refuseVisit(visit, refusals.requestTooLarge(settings.maxRequestBytes));
      return { state: "answered" };
  }
}

function openBody({ bodies, limitKey, settings }: PayingVisit, onDrop: () => void): PooledBody {
  const { maxUnverifiedBytes, maxRequestBytes: maxBodyBytes } = settings;
  return bodies.open({ key: limitKey, maxUnverifiedBytes, maxBodyBytes, onDrop });
}
