import type { Clock } from "@coinslot/chain";
import { type Address, plasma } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../logger.ts";
import { createMetrics } from "../metrics.ts";
import { type RelayerFunds, watchRelayerFunds } from "../relay/relayer-funds.ts";
import { trackedFrom } from "../relay/relayer-state.ts";
import { type Able, canSettle, maySweep, patienceOf } from "./ability.ts";

const rich: Address = `0x${"aa".repeat(20)}`;
const poor: Address = `0x${"bb".repeat(20)}`;
const sweepMs = 1_000;

/** A relayer of this process, with so many transactions that no block holds yet. */
function createRelayer(relayer: Address, inFlight: number): Able["relayers"][number] {
  const open = Array.from({ length: inFlight }, (_, nonce) =>
    trackedFrom(
      {
        id: String(nonce),
        network: plasma,
        relayer,
        nonce,
        gasLimit: 21_000n,
        createdAt: 0,
        broadcasts: [],
        payments: [],
      },
      0,
    ),
  );
  return {
    address: relayer,
    state: {
      lease: { name: relayer, owner: "here", epoch: 1, expiresAtMs: 1 },
      nextNonce: inFlight,
      open: new Map(open.map((transaction) => [transaction.id, transaction])),
      farSince: undefined,
      isFarLogged: false,
    },
    leaving: undefined,
    signer: { address: relayer, signTransaction: async () => "0x" },
  };
}

/** A process with these relayers. Of two transactions in flight, none is over the limit. */
function createAble(inFlight: { rich?: number; poor?: number }, queued: string[] = []) {
  const relayers = [
    ...(inFlight.rich === undefined ? [] : [createRelayer(rich, inFlight.rich)]),
    ...(inFlight.poor === undefined ? [] : [createRelayer(poor, inFlight.poor)]),
  ];
  return {
    relayers,
    funds: { sufficeFor: (relayer: Address) => relayer === rich },
    network: { maxInFlight: 2 },
    queues: { ids: () => queued },
    sweep: { isTakeover: false },
    sharing: {
      isSettler: (id: string) => id !== "seller",
      hasRelayer: (id: string) => id === "settler",
    },
  };
}

describe("a process leaves a payment", () => {
  it.each([
    ["to a settler for 4.5 sweeps while it is idle", "settler", createAble({ rich: 0 }), 4_500],
    ["to a settler for 19.5 while it sends", "settler", createAble({ rich: 1 }), 19_500],
    ["to a settler for 19.5 with a queue", "settler", createAble({ rich: 0 }, ["one"]), 19_500],
    ["to a settler for 19.5 without a relayer of its own", "settler", createAble({}), 19_500],
    ["to one without a relayer for half a sweep", "without", createAble({ rich: 0 }), 500],
    ["to no process that settles nothing", "seller", createAble({ rich: 0 }), 0],
  ])("%s", (_, processId, able, patienceMs) => {
    expect(patienceOf(able, { sweepMs })(processId)).toBe(patienceMs);
  });

  it("a process leaves a payment to none without a relayer after a takeover, and to settlers as before", () => {
    const able = { ...createAble({ rich: 0 }), sweep: { isTakeover: true } };
    expect(patienceOf(able, { sweepMs })("without")).toBe(0);
    expect(patienceOf(able, { sweepMs })("settler")).toBe(4_500);
  });
});

describe("a process sweeps others' payments", () => {
  it.each([
    ["with a relayer that may send", createAble({ rich: 1 }), true],
    ["not while all are in flight that a relayer may have", createAble({ rich: 2 }), false],
    ["not without a relayer", createAble({}), false],
    ["not by one without gas money beside one with it", createAble({ rich: 2, poor: 0 }), false],
    ["by one without gas money where none has any", createAble({ poor: 0 }), true],
  ])("%s", (_, able, expected) => {
    expect(maySweep(able)).toBe(expected);
  });
});

describe("a relayer that could not pay", () => {
  /** Funds on a clock that a test moves, and a node that returns this balance. */
  async function watch() {
    let now = 1;
    let balance = 100n;
    const clock: Clock = { now: () => now, setTimer: () => () => undefined };
    const result = () => `0x${balance.toString(16)}`;
    const funds: RelayerFunds = watchRelayerFunds({
      network: plasma,
      rpc: {
        chainId: 9745,
        endpoints: [],
        request: async () => result(),
        requestMany: async (calls) =>
          calls.map(() => ({ ok: true, result: result(), endpoint: 0, failures: [] })),
      },
      addresses: [rich],
      minimumBalance: 10n,
      warningBalance: 20n,
      isReader: () => true,
      readMs: 60_000,
      clock,
      logger: silentLogger,
      metrics: createMetrics(),
      emit: () => undefined,
    });
    onTestFinished(() => funds.stop());
    await funds.whenRead;
    return {
      funds,
      wait: (ms: number) => {
        now += ms;
      },
      receive: (amount: bigint) => {
        balance += amount;
        funds.learn([{ relayer: rich, balance }]);
      },
    };
  }

  it("is tried again after 15 s: gas may be cheaper", async () => {
    const { funds, wait } = await watch();
    const able = { ...createAble({ rich: 0 }), funds };
    expect(canSettle(able)).toBe(true);
    funds.cannotPay(rich);
    expect(canSettle(able)).toBe(false);
    wait(14_999);
    expect(funds.sufficeFor(rich)).toBe(false);
    wait(1);
    expect(funds.sufficeFor(rich)).toBe(true);
    expect(canSettle(able)).toBe(true);
  });

  it("is tried again at once when its balance has grown, and not when it is the same", async () => {
    const { funds, receive } = await watch();
    funds.cannotPay(rich);
    receive(0n);
    expect(funds.sufficeFor(rich)).toBe(false);
    receive(1n);
    expect(funds.sufficeFor(rich)).toBe(true);
  });
});
