import { readFile } from "node:fs/promises";
import { withDatabase } from "@coinslot/devnet";

/** Ticks of /proc in a second: fixed by Linux' interface, whatever the kernel's timer. */
const ticksPerSecond = 100;

/**
 * Processor time in seconds that the server's living processes have used, or `undefined` on a
 * system without `/proc`. Call it while the clients are connected: an ended backend's time is gone.
 */
export async function postgresSeconds(url: string): Promise<number | undefined> {
  const rows = await withDatabase(url, ({ read }) =>
    read("select pid from pg_stat_activity where pid <> pg_backend_pid()"),
  );
  try {
    const times = await Promise.all(rows.map(({ pid }) => secondsOf(String(pid))));
    return times.reduce((total, time) => total + time, 0);
  } catch {
    return undefined;
  }
}

async function secondsOf(pid: string): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name, in parentheses, and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system] = [fields[11], fields[12]].map(Number);
  return ((user ?? 0) + (system ?? 0)) / ticksPerSecond;
}
