import { systemClock } from "@coinslot/chain";
import { afterEach, describe, expect, it, vi } from "vitest";
import { silentLogger } from "../../logger.ts";
import { idOf, reserve, settle } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

const hourMs = 3_600_000;
const sweepMs = 57;
/** Longer than a busy machine stands still: neither process seems dead to the other. */
const heartbeatLeaseSeconds = 3;

/** Two processes on one PostgreSQL. The first holds the relayer, and reads the chain for both. */
async function begin(aheadMs: number) {
  settling = await startSettlingDevnet("postgres");
  const { start } = settling;
  const warnings: string[] = [];
  let [sweeps, heartbeats] = [0, 0];
  const wrong = await start({
    now: () => Date.now() + aheadMs,
    logger: { ...silentLogger, warn: (_, message) => void warnings.push(message) },
    times: { sweepMs },
    heartbeatLeaseSeconds,
    clock: {
      ...systemClock,
      setTimer(work, ms) {
        if (ms === sweepMs) sweeps += 1;
        if (ms === heartbeatLeaseSeconds * 200) heartbeats += 1;
        return systemClock.setTimer(work, ms);
      },
    },
  });
  const right = await start({ times: { sweepMs }, heartbeatLeaseSeconds });
  const seen = () => Math.min(sweeps / 2, heartbeats);
  return { ...settling, right, warnings, seen, wrong };
}

describe.each([
  [
    "an hour ahead",
    hourMs,
    /^this machine's clock is 3(59|60)\d s ahead of the database's: set both by NTP$/,
  ],
  [
    "an hour behind",
    -hourMs,
    /^this machine's clock is 3(59|60)\d s behind the database's: set both by NTP$/,
  ],
])("a process of a fleet whose clock is %s", (_, aheadMs, warning) => {
  it("settles payments of the others, ends none that waits, and drops no kept answer", async () => {
    const { devnet, pay, balanceOf, right, warnings, seen } = await begin(aheadMs);
    expect(warnings).toContainEqual(expect.stringMatching(warning));
    const paid = await pay();
    const reservation = await reserve(right, paid);
    const answer = { keyHash: "key", sealed: Uint8Array.of(1) };
    const { paymentPayload, paymentRequirements } = paid;
    const kept = await right.settle(paymentPayload, paymentRequirements, { reservation, answer });
    expect(kept).toMatchObject({ success: true });
    await right.deliver(reservation);

    // The second waits in the queue behind the first, which is in no block.
    await devnet.setAutomine(false);
    const first = settle(right, await pay());
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      20_000,
    );
    const second = settle(right, await pay());
    const before = seen();
    await vi.waitFor(() => expect(seen()).toBeGreaterThan(before + 3), 20_000);
    await devnet.setAutomine(true);
    await devnet.mine();
    expect(await Promise.all([first, second])).toMatchObject([
      { success: true },
      { success: true },
    ]);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
    const request = { id: idOf(paid), fingerprint: "GET /a", keyHash: "key" };
    expect(await right.lookUp(request)).toMatchObject({ answer: { keyHash: "key" } });
  });
});
