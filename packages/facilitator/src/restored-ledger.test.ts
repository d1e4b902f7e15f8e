import { rename } from "node:fs/promises";
import { backUpDatabase } from "@coinslot/devnet";
import { afterEach, describe, expect, it, vi } from "vitest";
import { reserve, settle } from "./testing/settling-actions.ts";
import { engines, type SettlingDevnet, startSettlingDevnet } from "./testing/settling-devnet.ts";

const soon = { heartbeatLeaseSeconds: 1 };
const patience = { timeout: 15_000, interval: 50 };
let here: SettlingDevnet | undefined;
afterEach(async () => {
  await here?.stop();
  here = undefined;
});

async function begin(engine: (typeof engines)[number]): Promise<SettlingDevnet> {
  here = await startSettlingDevnet(engine);
  return here;
}

describe.each(engines)("a ledger that is restored beneath a facilitator, on %s", (engine) => {
  it("moves no money twice, and the facilitator goes on with it", { timeout: 60_000 }, async () => {
    const { start, pay, ledger, balanceOf, devnet } = await begin(engine);
    const facilitator = await start(soon);
    const [before, lost, open, after] = [await pay(), await pay(), await pay(), await pay()];
    expect(await settle(facilitator, before)).toMatchObject({ success: true });
    const reservation = await reserve(facilitator, open);
    const backup = await backUpDatabase(ledger.url);
    await vi.waitFor(async () => expect(await facilitator.payments.list()).toBeDefined(), patience);
    await facilitator.release(reservation, "handler_failed");
    expect(await settle(facilitator, lost)).toMatchObject({ success: true });

    await backup.restore();
    await vi.waitFor(() => expect(facilitator.obstacles()).not.toEqual([]), patience);
    await vi.waitFor(() => expect(facilitator.obstacles()).toEqual([]), patience);

    // The backup has it as held by this process, under the name that it has given up.
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list();
      expect(payments.map(({ state }) => state).sort()).toEqual(["confirmed", "released"]);
    }, patience);
    // The token alone knows it. It buys nothing again.
    expect(await settle(facilitator, lost)).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_nonce_already_used",
    });
    expect(await settle(facilitator, open)).toMatchObject({ success: true });
    expect(await settle(facilitator, after)).toMatchObject({ success: true });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(4_000n);
  });
});

it("a ledger's file that was moved away is named, refuses payments, and creates no other one", async () => {
  const { start, pay, ledger } = await begin("sqlite");
  const facilitator = await start(soon);
  const path = ledger.url.slice("sqlite:".length);
  await rename(path, `${path}.moved`);
  await vi.waitFor(
    () => expect(facilitator.obstacles()).toEqual([expect.stringContaining("not there")]),
    patience,
  );
  await expect(settle(facilitator, await pay())).rejects.toMatchObject({
    kind: "unavailable",
    message: "The ledger is being opened anew",
  });
  await rename(`${path}.moved`, path);
  await vi.waitFor(() => expect(facilitator.obstacles()).toEqual([]), patience);
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
});
