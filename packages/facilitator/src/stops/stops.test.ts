import { EventEmitter, once } from "node:events";
import { withDatabase } from "@coinslot/devnet";
import { StoppedError, toLowerHex } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { openLedgerReader } from "../ledger/ledger-reader.ts";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../testing/settling-devnet.ts";
import { changeStops } from "./change-stops.ts";
import type { StopTarget } from "./stop.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

const network: StopTarget = { kind: "network", name: "eip155:9745" };
const weather: StopTarget = { kind: "route", name: "GET /weather" };
const reason = "maintenance until noon";

function verify(facilitator: CoinslotFacilitator, paid: Paid, route?: string) {
  return facilitator.verify(paid.paymentPayload, paid.paymentRequirements, { route });
}

/** Reserves as a gate does. */
function reserve(facilitator: CoinslotFacilitator, paid: Paid, route = "GET /weather") {
  const { paymentRequirements, authorization } = paid;
  return facilitator.reserve({
    id: {
      network: paymentRequirements.network,
      asset: toLowerHex(paymentRequirements.asset),
      payer: toLowerHex(authorization.from),
      nonce: authorization.nonce,
    },
    fingerprint: "GET /weather",
    value: authorization.value,
    validBefore: authorization.validBefore,
    payTo: toLowerHex(authorization.to),
    sold: { route, resource: "/weather", wire: "x402v2" },
  });
}

describe.each(enginesByDay("postgres"))("a stop switch on %s", (engine) => {
  let settling: SettlingDevnet;

  beforeEach(async () => {
    settling = await startSettlingDevnet(engine);
  });

  afterEach(() => settling.stop());

  const start = () => settling.start({ heartbeatLeaseSeconds: 1 });

  async function expectRefusal(facilitator: CoinslotFacilitator): Promise<void> {
    const paid = await settling.pay();
    const { paymentPayload, paymentRequirements } = paid;
    const refused = [
      verify(facilitator, paid),
      reserve(facilitator, paid),
      facilitator.settle(paymentPayload, paymentRequirements),
    ];
    for (const { status, ...result } of await Promise.allSettled(refused)) {
      expect({ status, ...result }).toMatchObject({
        status: "rejected",
        reason: {
          message: `New payments on eip155:9745 are stopped: ${reason}`,
          retryAfterSeconds: 60,
        },
      });
      expect("reason" in result && result.reason).toBeInstanceOf(StoppedError);
    }
  }

  it("refuses new payments of a network until it is cleared, also after a restart, or those of a route", async () => {
    const first = await start();
    await first.stops.set(network, { reason });
    await expectRefusal(first);
    expect(first.stops.list()).toMatchObject([{ ...network, reason }]);
    const metric = 'coinslot_stops{kind="network",name="eip155:9745"} 1';
    expect(await first.metrics.metrics()).toContain(metric);
    await first.close();

    const second = await start();
    await expectRefusal(second);
    await second.stops.clear(network);
    expect(second.stops.list()).toEqual([]);
    expect(await second.metrics.metrics()).not.toContain(metric);
    const { paymentPayload, paymentRequirements } = await settling.pay();
    expect(await second.settle(paymentPayload, paymentRequirements)).toMatchObject({
      success: true,
    });

    await second.stops.set(weather, { reason });
    const paid = await settling.pay();
    await expect(verify(second, paid, "GET /weather")).rejects.toThrow(
      `New payments for this route are stopped: ${reason}`,
    );
    await expect(reserve(second, paid)).rejects.toThrow(StoppedError);
    expect(await verify(second, paid, "GET /dear")).toMatchObject({ isValid: true });
    expect(await reserve(second, paid, "GET /dear")).toMatchObject({ state: "reserved" });
  });

  it("lets a reserved, a submitted and an undelivered payment end", async () => {
    const { devnet } = settling;
    const facilitator = await start();
    const held = await settling.pay();
    const reserved = await reserve(facilitator, held);
    const undelivered = await settling.pay();
    const earlier = await reserve(facilitator, undelivered);
    if (reserved.state !== "reserved" || earlier.state !== "reserved") throw new Error("refused");
    await facilitator.settle(undelivered.paymentPayload, undelivered.paymentRequirements, earlier);
    await facilitator.release(earlier.reservation, "outcome_unknown");
    await devnet.setAutomine(false);
    const sent = await settling.pay();
    const settlingSent = facilitator.settle(sent.paymentPayload, sent.paymentRequirements);
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list({ state: "submitted" });
      expect(payments).toHaveLength(1);
    }, 20_000);

    await facilitator.stops.set(network, { reason });
    await devnet.setAutomine(true);
    await devnet.mine();
    expect(await settlingSent).toMatchObject({ success: true });
    expect(
      await facilitator.settle(held.paymentPayload, held.paymentRequirements, reserved),
    ).toMatchObject({ success: true });
    const resumed = await reserve(facilitator, undelivered);
    if (resumed.state !== "resumed") throw new Error(resumed.state);
    const { paymentPayload, paymentRequirements } = undelivered;
    expect(await facilitator.settle(paymentPayload, paymentRequirements, resumed)).toMatchObject({
      success: true,
    });
    // The chain's word, and no refusal: the payment is none of the new ones.
    expect(await verify(facilitator, undelivered)).toMatchObject({ isValid: false });
    expect(await settling.balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
  });

  it("refuses a settlement that is being verified when it is set", async () => {
    const { devnet } = settling;
    const node = new EventEmitter();
    let isHeld = false;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (isHeld && method === "eth_call") {
        node.emit("called");
        await once(node, "goes on");
      }
      return ask();
    });
    onTestFinished(proxy.close);
    const facilitator = await settling.start({ network: { rpcUrls: [proxy.url] } });
    const { paymentPayload, paymentRequirements } = await settling.pay();
    isHeld = true;
    const called = once(node, "called");
    const settled = facilitator.settle(paymentPayload, paymentRequirements);
    const refused = expect(settled).rejects.toThrow(StoppedError);
    await called;
    await facilitator.stops.set(network, { reason });
    isHeld = false;
    node.emit("goes on");
    await refused;
    expect(await settling.balanceOf(devnet.accounts.seller.address)).toBe(0n);
  });

  it("lets a payment whose handler runs be verified again", async () => {
    const facilitator = await start();
    const paid = await settling.pay();
    expect(await reserve(facilitator, paid)).toMatchObject({ state: "reserved" });
    await facilitator.stops.set(network, { reason });
    expect(await verify(facilitator, paid)).toMatchObject({ isValid: true });
  });

  it("knows a route by its payments, and takes no resource for one", async () => {
    const facilitator = await start();
    const paid = await settling.pay();
    const reserved = await reserve(facilitator, paid);
    if (reserved.state !== "reserved") throw new Error(reserved.state);
    await facilitator.settle(paid.paymentPayload, paid.paymentRequirements, reserved);
    const { url } = settling.ledger;
    const setRoute = (name: string) =>
      changeStops({ url, change: { operation: "set", target: { kind: "route", name }, reason } });
    expect(await setRoute("GET /weather")).toMatchObject({ isKnown: true });
    expect(await setRoute("/weather")).toMatchObject({ isKnown: false });
  });

  it("is set and cleared from outside, beside its sellers and without them", async () => {
    const { url } = settling.ledger;
    const facilitators = [await start()];
    if (engine === "postgres") facilitators.push(await start());
    // No notification is sent: the heartbeats read it, and pass over what they do not know.
    await withDatabase(url, ({ execute }) =>
      execute(`insert into stops values ('route', 'GET /dear', '${reason}', 1),
        ('of a newer release', 'a name', '${reason}', 1)`),
    );
    for (const { stops } of facilitators) {
      await vi.waitFor(() => expect(stops.list()).toHaveLength(1), { timeout: 20_000 });
    }
    await facilitators[0]?.stops.clear({ kind: "route", name: "GET /dear" });
    const set = await changeStops({
      url,
      change: { operation: "set", target: network, reason },
    });
    expect(set).toMatchObject({ stops: [network], isKnown: true, runsOlderProgram: false });
    for (const facilitator of facilitators) {
      await vi.waitFor(() => expect(facilitator.stops.list()).toHaveLength(1), { timeout: 20_000 });
      await expectRefusal(facilitator);
      await facilitator.close();
    }
    const route = await changeStops({
      url,
      change: { operation: "set", target: weather, reason: "no forecast" },
    });
    expect(route).toMatchObject({ stops: [network, weather], isKnown: false });
    const cleared = await changeStops({ url, change: { operation: "clear", target: network } });
    expect(cleared).toMatchObject({ stops: [{ ...weather, reason: "no forecast" }] });
    const reader = await openLedgerReader({ url });
    expect(await reader.stops()).toEqual(cleared.stops);
    await reader.close();
  });
});
