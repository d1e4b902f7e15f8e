import type { ServerResponse } from "node:http";
import type { CycleBoard } from "../cycles/cycle-board.ts";
import { type CycleSummary, summarise } from "../cycles/summarise.ts";

/** A message of the stream. */
export interface BoardMessage {
  /** True if `cycles` are all; else those that have changed. */
  isAll: boolean;
  cycles: CycleSummary[];
  /** Cycles with a lower id are gone. */
  oldest: number;
  passed: number;
  dropped: number;
}

/** Streams to pages; more of them are refused. */
const maxStreams = 16;
/** Time in which changes are gathered. */
const gatherMs = 100;
/** Bytes that a page may leave unread; then it is cut off, and connects again. */
const maxUnread = 8 * 2 ** 20;

/** Server-sent events about all cycles. */
export interface EventStreams {
  /** Begins a stream; false where there are too many. */
  open(response: ServerResponse): boolean;
  close(): void;
}

/** Streams the changes of a board. */
export function createEventStreams(
  board: Pick<CycleBoard, "cycles" | "find" | "counts" | "subscribe">,
): EventStreams {
  const streams = new Set<ServerResponse>();
  const changed = new Set<number>();
  let timer: NodeJS.Timeout | undefined;

  function message(isAll: boolean): string {
    const all = board.cycles();
    const cycles = isAll
      ? all.map(summarise)
      : [...changed].flatMap((id) => {
          const cycle = board.find(id);
          return cycle === undefined ? [] : [summarise(cycle)];
        });
    const said: BoardMessage = { isAll, cycles, oldest: all[0]?.id ?? 0, ...board.counts() };
    return `data: ${JSON.stringify(said)}\n\n`;
  }

  function flush(): void {
    timer = undefined;
    const text = message(false);
    changed.clear();
    for (const stream of streams) {
      if (stream.writableLength > maxUnread) stream.destroy();
      else stream.write(text);
    }
  }

  const leave = board.subscribe((id) => {
    if (streams.size === 0) return;
    changed.add(id);
    timer ??= setTimeout(flush, gatherMs);
  });

  return {
    open(response) {
      if (streams.size >= maxStreams) return false;
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      response.write(`retry: 1000\n${message(true)}`);
      streams.add(response);
      response.on("close", () => streams.delete(response));
      return true;
    },
    close() {
      leave();
      clearTimeout(timer);
      for (const stream of streams) stream.destroy();
    },
  };
}
