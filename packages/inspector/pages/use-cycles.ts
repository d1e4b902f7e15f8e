import { useEffect, useState } from "preact/hooks";
import type { CycleSummary } from "../src/cycles/summarise.ts";
import type { BoardMessage } from "../src/page/event-stream.ts";

/** The list as the stream has it. */
export interface LiveCycles {
  /** Newest first; `undefined` before the first message. */
  cycles: CycleSummary[] | undefined;
  passed: number;
  dropped: number;
  /** Time at which the stream broke off; it connects again by itself. */
  lostAt: number | undefined;
}

/** Follows the cycles by server-sent events. */
export function useCycles(): LiveCycles {
  const [live, setLive] = useState<LiveCycles>({
    cycles: undefined,
    passed: 0,
    dropped: 0,
    lostAt: undefined,
  });
  useEffect(() => {
    const known = new Map<number, CycleSummary>();
    const stream = new EventSource("/api/events");
    stream.onmessage = ({ data }) => {
      const { isAll, cycles, oldest, passed, dropped }: BoardMessage = JSON.parse(data);
      if (isAll) known.clear();
      for (const cycle of cycles) known.set(cycle.id, cycle);
      for (const id of known.keys()) if (id < oldest) known.delete(id);
      const sorted = [...known.values()].sort((a, b) => b.id - a.id);
      setLive({ cycles: sorted, passed, dropped, lostAt: undefined });
    };
    stream.onerror = () =>
      setLive((before) => ({ ...before, lostAt: before.lostAt ?? Date.now() }));
    return () => stream.close();
  }, []);
  return live;
}
