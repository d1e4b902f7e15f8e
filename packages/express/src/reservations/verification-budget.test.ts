import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  CallerLimitedError,
  FacilitatorError,
  plasma,
  plasmaUsdt0,
  toLowerHex,
} from "@coinslot/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { createVerificationBudget, type VerificationBudget } from "./verification-budget.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const minuteMs = 60_000;
let time = 0;

beforeEach(() => {
  time = Math.floor(Date.now() / minuteMs) * minuteMs;
});

const paymentOf = (index: number) => ({
  id: {
    network: plasma,
    asset: plasmaUsdt0.address,
    payer: toLowerHex(`0x${index.toString(16).padStart(40, "0")}`),
    nonce: toLowerHex(`0x${"1".repeat(64)}`),
  },
});

const refused = "refused";

describe("the budget of a payer with a record", () => {
  it.each([
    ["its key", true],
    ["its code", false],
  ])(
    "is unaffected by the other kind of payment in its name, where it paid by %s",
    async (_by, isSignedByPayer) => {
      const budget = createVerificationBudget({ now: () => time });
      const admit = (index: number, isSigned: boolean) =>
        budget.admit(paymentOf(index), { limitKey: "shared", isSignedByPayer: isSigned });
      budget.prove(paymentOf(0), { limitKey: "shared", isSignedByPayer });
      for (let count = 0; count < 30; count += 1) (await admit(0, !isSignedByPayer))(refused);
      await expect(admit(0, !isSignedByPayer)).rejects.toThrow(/try again later/);
      for (let index = 1; index <= 30; index += 1) (await admit(index, isSignedByPayer))(refused);
      await expect(admit(31, isSignedByPayer)).rejects.toThrow(/try again later/);
      expect(await admit(0, isSignedByPayer)).toBeTypeOf("function");
    },
  );

  it("is not displaced by any number of payers with verified payments only", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const signed = { limitKey: "shared", isSignedByPayer: true };
    budget.prove(paymentOf(0), signed);
    for (let index = 1; index <= 10_001; index += 1) {
      (await budget.admit(paymentOf(index), signed))("good");
      budget.decide(paymentOf(index).id, { isUnused: false });
    }
    for (let index = 1; index <= 30; index += 1) {
      (await budget.admit(paymentOf(index), signed))(refused);
    }
    expect(await budget.admit(paymentOf(0), signed)).toBeTypeOf("function");
  });
});

describe("a payer with a record", () => {
  it("is forgotten for 10,000 other payers that have paid, and for no fewer", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const signed = { limitKey: "shared", isSignedByPayer: true };
    for (let index = 0; index < 10_000; index += 1) budget.prove(paymentOf(index), signed);
    for (let index = 20_000; index < 20_030; index += 1) {
      (await budget.admit(paymentOf(index), signed))(refused);
    }
    expect(await budget.admit(paymentOf(0), signed)).toBeTypeOf("function");
    budget.prove(paymentOf(10_000), signed);
    await expect(budget.admit(paymentOf(0), signed)).rejects.toThrow(/try again later/);
    expect(await budget.admit(paymentOf(1), signed)).toBeTypeOf("function");
  });
});

describe("the budget of all payers with a record together", () => {
  it.each([
    ["refused", 1_200, 30],
    ["unused", 12_000, 300],
  ] as const)(
    "has room for as many %s payments a minute as that of all callers",
    async (end, total, perCaller) => {
      const budget = createVerificationBudget({ now: () => time });
      const signed = { limitKey: "shared", isSignedByPayer: false };
      let admitted = 0;
      for (let index = 0; index <= 40; index += 1) {
        budget.prove(paymentOf(index), signed);
        for (let count = 0; count <= perCaller; count += 1) {
          const record = await budget.admit(paymentOf(index), signed).catch(() => undefined);
          record?.(end === "refused" ? end : "good");
          if (record !== undefined && end === "unused") {
            budget.decide(paymentOf(index).id, { isUnused: true });
          }
          if (record !== undefined) admitted += 1;
        }
      }
      expect(admitted).toBe(total + perCaller);
    },
  );
});

describe("the budget of a caller", () => {
  it("is named as such where it is empty, and that of all callers is not", async () => {
    const budget = createVerificationBudget({ now: () => time });
    let index = 0;
    const bring = async (limitKey: string) => {
      index += 1;
      const asking = { limitKey, isSignedByPayer: false };
      (await budget.admit(paymentOf(index), asking))("refused");
    };
    for (let count = 0; count < 30; count += 1) await bring("flood");
    await expect(bring("flood")).rejects.toThrow(CallerLimitedError);
    for (let count = 0; count < 1_170; count += 1) await bring(`caller ${count % 100}`);
    const shutOut: unknown = await bring("honest").catch((error: unknown) => error);
    expect(shutOut).toBeInstanceOf(FacilitatorError);
    expect(shutOut).not.toBeInstanceOf(CallerLimitedError);
  });

  it("does not grow with payments that another caller presents too", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const bring = async (index: number, limitKey: string) =>
      (await budget.admit(paymentOf(index), { limitKey, isSignedByPayer: true }))("good");
    for (let index = 0; index < 300; index += 1) {
      await bring(index, `helper ${index % 30}`);
      await bring(index, "caller");
      budget.decide(paymentOf(index).id, { isUnused: false });
      budget.decide(paymentOf(index).id, { isUnused: true });
    }
    await expect(bring(300, "caller")).rejects.toThrow(/try again later/);
  });

  const signed = { limitKey: "caller", isSignedByPayer: true };
  const cannotWait = { mayWait: () => false, isGone: () => false };

  /** Runs as many verifications as the caller may have at a time. */
  async function fill(budget: VerificationBudget, isSignedByPayer = true) {
    const running: ReturnType<typeof budget.admit>[] = [];
    for (let index = 0; index < 30; index += 1) {
      running.push(budget.admit(paymentOf(index), { ...signed, isSignedByPayer }));
    }
    return Promise.all(running);
  }

  it("holds 300 payments that were found good, and whose handlers have not begun", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const admit = (index: number) =>
      budget.admit(paymentOf(index), { ...signed, wait: cannotWait });
    for (let index = 0; index < 300; index += 1) (await admit(index))("good");
    await expect(admit(300)).rejects.toThrow(/being verified/);
    budget.decide(paymentOf(0).id, { isUnused: false });
    expect(await admit(300)).toBeTypeOf("function");
  });

  it("gives a free place to the first that waits, and not to a newcomer", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const [first, second] = await fill(budget);
    const waiting = budget.admit(paymentOf(30), signed);
    await nextTick();
    first?.("good");
    const newcomer = budget.admit(paymentOf(31), signed);
    const served = await Promise.race([
      waiting.then(() => "the first that waits"),
      newcomer.then(() => "the newcomer"),
    ]);
    expect(served).toBe("the first that waits");
    second?.("good");
    expect(await newcomer).toBeTypeOf("function");
  });

  it("refuses a payment that may not wait, also while others wait", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const [first, second] = await fill(budget);
    const waiting = budget.admit(paymentOf(30), signed);
    const refusal = budget.admit(paymentOf(31), { ...signed, wait: cannotWait });
    await expect(refusal).rejects.toThrow(/being verified/);
    first?.("good");
    expect(await waiting).toBeTypeOf("function");
    second?.("good");
    const admitted = budget.admit(paymentOf(31), { ...signed, wait: cannotWait });
    expect(await admitted).toBeTypeOf("function");
  });

  it.each([true, false])(
    "counts those that run when a minute ends (signed by their payers: %s)",
    async (isSignedByPayer) => {
      const budget = createVerificationBudget({ now: () => time });
      const running = await fill(budget, isSignedByPayer);
      time += minuteMs;
      const next = () =>
        budget.admit(paymentOf(30), { ...signed, isSignedByPayer, wait: cannotWait });
      await expect(next()).rejects.toThrow(FacilitatorError);
      for (const record of running) record("good");
      expect(await next()).toBeTypeOf("function");
    },
  );
});

describe("the budget of all callers together", () => {
  it.each([true, false])(
    "allows 1,200 refused payments in a minute (signed by their payers: %s), and valid ones besides",
    async (isSignedByPayer) => {
      const budget = createVerificationBudget({ now: () => time });
      const admit = (index: number, isSigned: boolean) =>
        budget.admit(paymentOf(index), {
          limitKey: `caller ${index % 60}`,
          isSignedByPayer: isSigned,
        });
      for (let index = 0; index < 1_200; index += 1) (await admit(index, isSignedByPayer))(refused);
      await expect(admit(1_201, isSignedByPayer)).rejects.toThrow(/try again later/);
      expect(await admit(1_201, !isSignedByPayer)).toBeTypeOf("function");
      time += minuteMs;
      expect(await admit(1_201, isSignedByPayer)).toBeTypeOf("function");
    },
  );

  it("keeps no callers once it is spent", async () => {
    const budget = createVerificationBudget({ now: () => time });
    const admit = (limitKey: string) =>
      budget.admit(paymentOf(0), { limitKey, isSignedByPayer: false });
    for (let index = 0; index < 1_200; index += 1) (await admit(`caller ${index}`))(refused);
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    let refusals = 0;
    for (let index = 0; index < 20_000; index += 1) {
      const name = Buffer.alloc(2_000, `caller ${index} `).toString("latin1");
      await admit(name).catch(() => {
        refusals += 1;
      });
    }
    collectGarbage();
    expect(refusals).toBe(20_000);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  });
});
