import { type DatabaseReader, withDatabase } from "@coinslot/devnet";
import { afterEach, expect, it } from "vitest";
import { reserve, settle } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;
let stopped: number[] = [];

afterEach(async () => {
  signal(stopped, "SIGCONT");
  stopped = [];
  await settling?.stop();
});

/** Stops server processes of PostgreSQL, or lets them go on. */
function signal(pids: readonly number[], name: "SIGSTOP" | "SIGCONT"): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // Its connection has ended meanwhile.
    }
  }
}

/** The server processes of all other connections to the database. */
async function backends({ read }: DatabaseReader): Promise<number[]> {
  const rows = await read(`
    select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`);
  return rows.map(({ pid }) => Number(pid));
}

it("leaves a running handler its payment where PostgreSQL stood still for a lease, for both of its processes", {
  timeout: 120_000,
}, async () => {
  settling = await startSettlingDevnet("postgres");
  const { devnet, ledger, start, pay, balanceOf } = settling;
  const leaseMs = 2_000;
  const options = { heartbeatLeaseSeconds: leaseMs / 1000 };
  await withDatabase(ledger.url, async (reader) => {
    const one = await start(options);
    const ofOne = await backends(reader);
    let lead = 0;
    const two = await start({ ...options, now: () => Date.now() + lead });
    const paid = await pay();
    const reservation = await reserve(one, paid);
    // It has run for a lease, and knows which others live.
    lead = leaseMs;
    stopped = await backends(reader);
    signal(stopped, "SIGSTOP");
    const second = reserve(two, paid).then(
      () => "reserved",
      (error: unknown) => String(error),
    );
    await expect
      .poll(
        async () => {
          const [row] = await reader.read(`
            select extract(epoch from clock_timestamp()) * 1000 - max(heartbeat_at) as age
            from processes`);
          return Number(row?.age);
        },
        { timeout: 30_000 },
      )
      .toBeGreaterThan(leaseMs);
    // The connections of the other one are still silent.
    signal(
      stopped.filter((pid) => !ofOne.includes(pid)),
      "SIGCONT",
    );
    expect(await second).toContain("in_use");
    signal(stopped, "SIGCONT");
    expect(await settle(one, paid, reservation)).toMatchObject({ success: true });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });
});
