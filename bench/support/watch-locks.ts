import { setTimeout as sleep } from "node:timers/promises";
import { withDatabase } from "@coinslot/devnet";

const everyMs = 50;

/** Counts, now and then, the connections to a database that wait for a lock of another one. */
export function watchLocks(url: string): { end(): Promise<number> } {
  let isEnding = false;
  const counting = withDatabase(url, async ({ read }) => {
    let [waiting, looks] = [0, 0];
    while (!isEnding) {
      const rows = await read(`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
      `);
      waiting += rows.length;
      looks += 1;
      await sleep(everyMs);
    }
    return waiting / looks;
  });
  return {
    /** Resolves to their number on average. */
    async end() {
      isEnding = true;
      return counting;
    },
  };
}
