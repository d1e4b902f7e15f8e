import { rename } from "node:fs/promises";
import { backUpDatabase, withDatabase } from "@coinslot/devnet";
import { afterEach, describe, expect, it, vi } from "vitest";
import { changeStops } from "./stops/change-stops.ts";
import type { StopTarget } from "./stops/stop.ts";
import { type NodeProxy, startNodeProxy } from "./testing/node-proxy.ts";
import { reserve, settle } from "./testing/settling-actions.ts";
import { engines, type SettlingDevnet, startSettlingDevnet } from "./testing/settling-devnet.ts";

const kept: StopTarget = { kind: "route", name: "GET /cake" };
const forgotten: StopTarget = { kind: "route", name: "GET /tea" };
const soon = { heartbeatLeaseSeconds: 1 };
const patience = { timeout: 60_000, interval: 50 };
let here: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;
afterEach(async () => {
  await here?.stop();
  await proxy?.close();
  here = undefined;
  proxy = undefined;
});

async function begin(engine: (typeof engines)[number]): Promise<SettlingDevnet> {
  here = await startSettlingDevnet(engine);
  return here;
}

/** Waits for heartbeats that the backup lacks: by them the process notices the restore. */
async function waitForHeartbeats(url: string): Promise<void> {
  const written = () =>
    withDatabase(url, ({ read }) => read("select heartbeat_at from processes order by id"));
  // The process has what the first of them has returned when it writes the second.
  for (let count = 0; count < 2; count += 1) {
    const last = await written();
    await vi.waitFor(async () => expect(await written()).not.toEqual(last), patience);
  }
}

describe.each(engines)("a ledger that is restored beneath a facilitator, on %s", (engine) => {
  it("moves no money twice, and the facilitator goes on with it", {
    timeout: 120_000,
  }, async () => {
    const { start, pay, ledger, balanceOf, devnet } = await begin(engine);
    const facilitator = await start(soon);
    const [before, lost, open, sent, after] = await Promise.all([
      pay(),
      pay(),
      pay(),
      pay(),
      pay(),
    ]);
    expect(await settle(facilitator, before)).toMatchObject({ success: true });
    const reservation = await reserve(facilitator, open);
    await facilitator.stops.set(kept, { reason: "no cake" });
    const backup = await backUpDatabase(ledger.url);
    await vi.waitFor(async () => expect(await facilitator.payments.list()).toBeDefined(), patience);
    await facilitator.release(reservation, "handler_failed");
    expect(await settle(facilitator, lost)).toMatchObject({ success: true });
    await facilitator.stops.set(forgotten, { reason: "no tea" });

    await devnet.setAutomine(false);
    const underWay = settle(facilitator, sent).catch((error: unknown) => error);
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list({ state: "submitted" });
      expect(payments).toHaveLength(1);
    }, patience);
    await waitForHeartbeats(ledger.url);
    await backup.restore();
    await vi.waitFor(() => expect(facilitator.obstacles()).not.toEqual([]), patience);
    // Its wait ends with the former engine, which knows no outcome of it.
    expect(await underWay).not.toMatchObject({ success: true });
    await devnet.setAutomine(true);
    await devnet.mine();
    await vi.waitFor(() => expect(facilitator.obstacles()).toEqual([]), patience);
    expect(facilitator.stops.list()).toMatchObject([kept]);
    const outside = await changeStops({
      url: ledger.url,
      change: { operation: "clear", target: kept },
    });
    expect(outside.stops).toEqual([]);
    await vi.waitFor(() => expect(facilitator.stops.list()).toEqual([]), patience);

    // The backup has it as held by this process, under the name that it has given up.
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list();
      expect(payments.map(({ state }) => state).sort()).toEqual(["confirmed", "released"]);
    }, patience);
    // The token alone knows them. They buy nothing again.
    for (const payment of [lost, sent]) {
      expect(await settle(facilitator, payment)).toMatchObject({
        success: false,
        errorReason: "invalid_exact_evm_nonce_already_used",
      });
    }
    expect(await settle(facilitator, open)).toMatchObject({ success: true });
    expect(await settle(facilitator, after)).toMatchObject({ success: true });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(5_000n);
  });
});

it("a payment that a restored ledger lacks buys nothing again, also at a node behind its block", async () => {
  const { devnet, start, pay, ledger, balanceOf } = await begin("sqlite");
  let isBehind = false;
  let before = 0n;
  proxy = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    const [, block] = call.params;
    if (isBehind && call.method === "eth_call" && block === "latest") {
      call.params[1] = `0x${before.toString(16)}`;
    }
    return ask();
  });
  const facilitator = await start({ ...soon, network: { rpcUrls: [proxy.url] } });
  const lost = await pay();
  const backup = await backUpDatabase(ledger.url);
  before = await devnet.client.getBlockNumber();
  expect(await settle(facilitator, lost)).toMatchObject({ success: true });
  await backup.restore();
  await vi.waitFor(() => expect(facilitator.obstacles()).not.toEqual([]), patience);
  await vi.waitFor(() => expect(facilitator.obstacles()).toEqual([]), patience);
  isBehind = true;
  await expect(settle(facilitator, lost)).rejects.toMatchObject({
    kind: "unavailable",
    message: "The node that tried the payment is behind its chain; try again",
  });
  isBehind = false;
  expect(await settle(facilitator, lost)).toMatchObject({
    success: false,
    errorReason: "invalid_exact_evm_nonce_already_used",
  });
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
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
