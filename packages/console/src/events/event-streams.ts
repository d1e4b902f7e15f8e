import type { ServerResponse } from "node:http";
import type { Operation } from "@coinslot/facilitator";
import { RefusedError, refusals } from "../api/refusal.ts";
import type { Session } from "../sessions/session.ts";
import type { Sessions } from "../sessions/sessions.ts";
import { createPaymentWatch, type WatchedState } from "./payment-watch.ts";
import type { ReadMeter } from "./read-meter.ts";

/** The open event streams of a console. */
export interface EventStreams {
  /**
   * Sends events until the reader leaves, its session ends, or the console closes.
   *
   * @param session `undefined` for a program of this machine that may read without one
   * @throws RefusedError where too many are open
   */
  open(response: ServerResponse, session: Session | undefined): void;
  close(): void;
}

/** Of operators, and of all others: readers keep no operator from its stream. */
const maxStreams = 32;
const maxStreamsOfSession = 8;
/** Also tells proxies that the stream is alive, and notices the end of sessions. */
const tickMs = 5_000;
/** A reader that does not read is cut off: its events would fill the memory. */
const maxUnreadBytes = 64 * 2 ** 10;

interface Stream {
  response: ServerResponse;
  session: Session | undefined;
}

/** Creates the streams, which share one read. */
export function createEventStreams(options: {
  meter: ReadMeter;
  operations: ReadonlyMap<string, Operation>;
  sessions: Sessions;
  codeOf: (error: unknown) => string;
}): EventStreams {
  const { sessions } = options;
  const streams = new Set<Stream>();
  let last: WatchedState | undefined;
  let timer: NodeJS.Timeout | undefined;
  const watch = createPaymentWatch({
    ...options,
    onState(state) {
      last = state;
      for (const stream of streams) tell(stream, formOf(state));
    },
  });

  function tell(stream: Stream, event: string): void {
    const { response, session } = stream;
    if (session !== undefined && !sessions.isOpen(session)) {
      end(stream);
      return;
    }
    response.write(event);
    // Destroyed, it leaves by its event.
    if (response.writableLength > maxUnreadBytes) response.destroy();
  }

  function leave(stream: Stream): void {
    streams.delete(stream);
    if (streams.size === 0) rest();
  }

  /**
   * In a full room, the session with the most streams gives its oldest one to a session that has
   * fewer.
   */
  function makeRoom(session: Session | undefined): void {
    const room = [...streams].filter(
      (stream) => isOperators(stream.session) === isOperators(session),
    );
    const shares = new Map<Session | undefined, Stream[]>();
    for (const stream of room) {
      shares.set(stream.session, [...(shares.get(stream.session) ?? []), stream]);
    }
    const own = shares.get(session)?.length ?? 0;
    if (own >= maxStreamsOfSession) throw new RefusedError(refusals.tooManyStreams);
    if (room.length < maxStreams) return;
    const [largest = []] = [...shares.values()].sort((one, other) => other.length - one.length);
    const [oldest] = largest.length > own + 1 ? largest : [];
    if (oldest === undefined) throw new RefusedError(refusals.tooManyStreams);
    end(oldest);
  }

  function end(stream: Stream): void {
    stream.response.end("event: ended\ndata: {}\n\n");
    leave(stream);
  }

  function rest(): void {
    watch.stop();
    clearInterval(timer);
    timer = undefined;
    last = undefined;
  }

  return {
    open(response, session) {
      makeRoom(session);
      const stream = { response, session };
      streams.add(stream);
      response.once("close", () => leave(stream));
      // No proxy, and no compression of the application, may hold events back.
      response.setHeader("Cache-Control", "no-store, no-transform");
      response.setHeader("X-Accel-Buffering", "no");
      response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
      response.write("retry: 3000\n\n");
      if (last !== undefined) tell(stream, formOf(last));
      watch.start();
      timer ??= setInterval(() => {
        for (const each of streams) tell(each, ": alive\n\n");
      }, tickMs).unref();
    },
    close() {
      for (const { response } of streams) response.end();
      streams.clear();
      rest();
    },
  };
}

/** Where acting is off, an operator's session is a reader, too: its holder counts. */
const isOperators = (session: Session | undefined) => session?.holder === "operator";

/** A change names no payment: the reader asks for what it shows, with its token. */
function formOf(state: WatchedState): string {
  const { kind, ...data } = state;
  return `event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
}
