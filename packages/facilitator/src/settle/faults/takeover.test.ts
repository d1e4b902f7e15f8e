import { once } from "node:events";
import { useProgram } from "@coinslot/devnet/use-program";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import { undoBlocks } from "../../ledger/transactions/undo-blocks.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import {
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";
import type { FaultPointName } from "../context.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

const program = useProgram(settlingProgram);
let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

const soon = { heartbeatLeaseSeconds: 1.5, times: { leaseMs: 1_500, sweepMs: 200, resendMs: 300 } };

/** Settles in a process of its own; resolves to its exit. */
async function settleInChild(
  here: SettlingDevnet,
  payments: readonly Paid[],
  dieAt?: FaultPointName,
): Promise<{ signal: string | null; output: string }> {
  const child = spawnSettling(program(), here, payments, { dieAt });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += String(chunk);
  });
  const ended: unknown[] = await once(child, "close");
  return { signal: typeof ended[1] === "string" ? ended[1] : null, output };
}

/**
 * The fault point, and the possible states of its payments before any retry. A queued payment may
 * be settled by the relayer's next holder before the death is noticed.
 */
const places: readonly [FaultPointName, readonly string[]][] = [
  ["queued", ["released", "confirmed"]],
  ["signed", ["released", "confirmed"]],
  ["stored", ["confirmed"]],
  ["broadcast", ["confirmed"]],
  ["included", ["confirmed"]],
  ["recorded", ["confirmed"]],
];

describe.each(enginesByDay("sqlite"))("a process that is killed, on %s", (engine) => {
  it.each(places)(
    "a process killed after %s has its payments concluded by another, each paid once",
    async (place, ends) => {
      settling = await startSettlingDevnet(engine);
      const { devnet, start, pay, balanceOf } = settling;
      const payments = await Promise.all([pay(), pay(), pay()]);
      const { signal } = await settleInChild(settling, payments, place);
      expect(signal).toBe("SIGKILL");

      const next = await start(soon);
      await vi.waitFor(
        async () => {
          const { payments: known } = await next.payments.list();
          expect(known.filter(({ state }) => ends.includes(state))).toHaveLength(3);
        },
        { timeout: 20_000, interval: 100 },
      );
      // A retry after the dead process's lease is served, and pays nothing more.
      await Promise.all(
        payments.map(({ paymentPayload, paymentRequirements }) =>
          vi.waitFor(
            async () => {
              const settled = await next.settle(paymentPayload, paymentRequirements);
              expect(settled).toMatchObject({ success: true });
            },
            { timeout: 20_000, interval: 200 },
          ),
        ),
      );
      expect(await balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
    },
  );
});

describe("processes on one PostgreSQL ledger", () => {
  it("settle together with one relayer, without a collision", async () => {
    settling = await startSettlingDevnet("postgres");
    const { devnet, start, pay, balanceOf } = settling;
    const facilitators = await Promise.all([start(), start(), start(), start()]);
    const payments = await Promise.all(Array.from({ length: 80 }, () => pay()));
    const settled = await Promise.all(
      payments.map(({ paymentPayload, paymentRequirements }, index) =>
        facilitators[index % 4]?.settle(paymentPayload, paymentRequirements),
      ),
    );
    expect(settled.filter((response) => response?.success)).toHaveLength(80);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(80_000n);
  });

  it("serve one authorization once, at whichever process it arrives", async () => {
    settling = await startSettlingDevnet("postgres");
    const { devnet, start, pay, balanceOf } = settling;
    const facilitators = await Promise.all([start(), start(), start(), start()]);
    const { paymentPayload, paymentRequirements } = await pay();
    const settled = await Promise.all(
      facilitators.map((facilitator) => facilitator.settle(paymentPayload, paymentRequirements)),
    );
    expect(settled.filter(({ success }) => success)).toHaveLength(1);
    const others = settled.filter(({ success }) => !success);
    expect(others.map(({ errorReason }) => errorReason)).toEqual(
      Array(3).fill("duplicate_settlement"),
    );
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("learn of a reversal by a process that died before its notification", async () => {
    settling = await startSettlingDevnet("postgres");
    const { devnet, ledger, start, pay } = settling;
    const facilitator = await start();
    const { paymentPayload, paymentRequirements } = await pay();
    expect(await facilitator.settle(paymentPayload, paymentRequirements)).toMatchObject({
      success: true,
    });
    const stateOf = async () => (await facilitator.payments.list()).payments[0];
    const inclusion = (await stateOf())?.inclusion;
    if (inclusion === undefined) throw new Error("The payment is in no block");
    const { database, close } = await openLedger({ url: ledger.url, processId: "the dead" });
    const undone = await undoBlocks(
      { write: database.transaction },
      {
        network: devnet.network,
        blocks: [{ number: inclusion.blockNumber, hash: inclusion.blockHash }],
      },
    );
    await close();
    expect(undone).toHaveLength(1);
    await vi.waitFor(async () => expect(await stateOf()).toMatchObject({ state: "confirmed" }), {
      timeout: 20_000,
    });
  });

  it("survive the death of the relayer's holder", async () => {
    settling = await startSettlingDevnet("postgres");
    const { devnet, start, pay, balanceOf } = settling;
    const dying = settleInChild(settling, [await pay()], "stored");
    expect((await dying).signal).toBe("SIGKILL");
    // Longer than a busy machine stands still: neither seems dead to the other.
    const patient = { ...soon, heartbeatLeaseSeconds: 5 };
    const [one, two] = await Promise.all([start(patient), start(patient)]);
    const payments = await Promise.all(Array.from({ length: 20 }, () => pay()));
    const settled = await Promise.all(
      payments.map(({ paymentPayload, paymentRequirements }, index) =>
        (index % 2 ? one : two).settle(paymentPayload, paymentRequirements),
      ),
    );
    expect(settled.filter(({ success }) => success)).toHaveLength(20);
    await vi.waitFor(
      async () => expect(await balanceOf(devnet.accounts.seller.address)).toBe(21_000n),
      { timeout: 20_000, interval: 100 },
    );
  });
});

describe("a second process on one SQLite file", () => {
  it("is refused with an error that names the remedy", async () => {
    settling = await startSettlingDevnet("sqlite");
    await settling.start();
    await expect(settling.start()).rejects.toThrow(/Another process works on .*PostgreSQL/s);
  });
});
