import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { useProgram } from "@coinslot/devnet/use-program";
import { FacilitatorError } from "@coinslot/protocol";
import { type Hex, isHex } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import { callsByNonce, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { drain, reserve, settle } from "../../testing/settling-actions.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import {
  type Engine,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";
import type { FaultPointName } from "../context.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

const program = useProgram(settlingProgram);
let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;
let child: ChildProcess | undefined;

afterEach(async () => {
  child?.kill("SIGKILL");
  await settling?.stop();
  await proxy?.close();
  child = undefined;
  settling = undefined;
  proxy = undefined;
});

const soon = { heartbeatLeaseSeconds: 1.5, times: { leaseMs: 1_500, sweepMs: 200, resendMs: 300 } };

/** A devnet that records every broadcast. */
async function begin(engine: Engine) {
  const here = await startSettlingDevnet(engine);
  settling = here;
  const broadcasts = new Set<Hex>();
  proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_sendRawTransaction" && isHex(raw)) broadcasts.add(raw);
    return ask();
  });
  return { ...here, broadcasts, rpcUrl: proxy.url };
}

/** Starts a process that takes the relayer, settles, and freezes itself at a fault point. */
async function freezeInChild(
  here: Awaited<ReturnType<typeof begin>>,
  payments: readonly Paid[],
  freezeAt: FaultPointName,
) {
  const frozen = spawnSettling(program(), here, payments, { freezeAt, rpcUrl: here.rpcUrl });
  child = frozen;
  const ended = once(frozen, "close");
  const lines: string[] = [];
  createInterface({ input: frozen.stdout }).on("line", (line) => lines.push(line));
  await vi.waitFor(() => expect(lines).toEqual(["frozen"]), 40_000);
  return {
    /** Lets it continue; resolves to its exit code and its payments' outcomes. */
    async notify() {
      frozen.kill("SIGCONT");
      const [code] = await ended;
      return { code, outcome: lines[1] };
    },
  };
}

describe("a process that is frozen while it holds the relayer, on PostgreSQL", () => {
  it.each(["signed", "stored"] as const)(
    "a process frozen after %s loses the relayer to another one, reuses no nonce, and learns the outcome",
    async (place) => {
      const here = await begin("postgres");
      const { devnet, start, pay, balanceOf, broadcasts, rpcUrl } = here;
      const { relayer, seller } = devnet.accounts;
      const payments = await Promise.all([pay(), pay(), pay()]);
      const frozen = await freezeInChild(here, payments, place);

      // The other one settles: it holds the relayer, so the lease of the frozen one is over.
      const next = await start({ ...soon, network: { rpcUrls: [rpcUrl] } });
      const own = await pay();
      expect(await next.settle(own.paymentPayload, own.paymentRequirements)).toMatchObject({
        success: true,
      });

      const { code, outcome } = await frozen.notify();
      expect(code).toBe(0);
      // A payment that was not stored yet may have been released with the seemingly dead owner.
      const outcomes =
        place === "signed"
          ? /^\[((true|"settlement_pending"|"unavailable"),?){3}]$/
          : /^\[true,true,true]$/;
      expect(outcome).toMatch(outcomes);

      for (const { paymentPayload, paymentRequirements } of payments) {
        await vi.waitFor(
          async () => {
            const { success, errorReason } = await next.settle(paymentPayload, paymentRequirements);
            expect(success || errorReason === "duplicate_settlement").toBe(true);
          },
          { timeout: 20_000, interval: 100 },
        );
      }
      expect(await balanceOf(seller.address)).toBe(4_000n);
      const calls = callsByNonce(broadcasts);
      expect([...calls.values()].every(({ size }) => size === 1)).toBe(true);
      expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(
        calls.size,
      );
    },
  );
});

describe("a process that stands still after it has queued a payment, on PostgreSQL", () => {
  it("does not answer for a payment that failed meanwhile, and was settled for another request", async () => {
    const here = await begin("postgres");
    const { devnet, start, pay, balanceOf } = here;
    const { buyer, seller } = devnet.accounts;
    // The first one holds the relayer.
    const other = await start({ times: { sweepMs: 100 } });
    let wake: () => void = () => undefined;
    const stood = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let isStill = false;
    const still = await start({
      times: { sweepMs: 100 },
      async faultPoint(name) {
        if (name !== "queued") return;
        isStill = true;
        await stood;
      },
    });

    const paid = await pay();
    const reservation = await reserve(still, paid);
    await drain(here);
    const first = settle(still, paid, reservation);
    const isRefused = expect(first).rejects.toThrow(FacilitatorError);
    await vi.waitFor(async () => {
      expect(isStill).toBe(true);
      const { payments } = await other.payments.list({ state: "failed" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    const second = await settle(other, paid, await reserve(other, paid));
    wake();

    expect(second).toMatchObject({ success: true });
    await isRefused;
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });
});

describe("a process that is frozen for longer than its lease, on SQLite", () => {
  it("is not replaced, and continues when it wakes up", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay, balanceOf, broadcasts } = here;
    const { seller } = devnet.accounts;
    const frozen = await freezeInChild(here, [await pay(), await pay()], "stored");
    await expect(start(soon)).rejects.toThrow(/Another process works on/);
    const { code, outcome } = await frozen.notify();
    expect({ code, outcome }).toEqual({ code: 0, outcome: "[true,true]" });
    expect(await balanceOf(seller.address)).toBe(2_000n);
    expect([...callsByNonce(broadcasts).values()].every(({ size }) => size === 1)).toBe(true);
  });
});
