import type { SettleResponse, VerifyResponse } from "@coinslot/protocol";
import { beforeEach, describe, expect, test } from "vitest";
import {
  createHooks,
  type HookContext,
  type HookMethods,
  type HookSet,
  type Hooks,
} from "./hooks.ts";
import type { Logger } from "./logger.ts";

const context: HookContext = {
  paymentPayload: { x402Version: 2, payload: {} },
  requirements: {
    scheme: "exact",
    network: "eip155:9745",
    asset: "0x",
    payTo: "0x",
    maxTimeoutSeconds: 60,
  },
};
const valid: VerifyResponse = { isValid: true, payer: "0xabc" };
const invalid: VerifyResponse = {
  isValid: false,
  invalidReason: "invalid_exact_evm_signature",
  invalidMessage: "not the payer's",
};
const settled: SettleResponse = {
  success: true,
  transaction: "0x1",
  network: "eip155:9745",
  payer: "0xabc",
};
const failed: SettleResponse = {
  success: false,
  errorReason: "invalid_exact_evm_transaction_failed",
  transaction: "0x2",
  network: "eip155:9745",
};

let logged: unknown[];
let seen: string[];
let hooks: Hooks;
beforeEach(() => {
  logged = [];
  seen = [];
  const log = (fields: object) => void logged.push(fields);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  hooks = createHooks({ logger });
});

/** Adds a hook that records its context, and then runs `then`. */
function watch(name: keyof HookSet, then: () => unknown = () => undefined) {
  const methods = hooks.methods(() => undefined);
  switch (name) {
    case "onBeforeVerify":
    case "onBeforeSettle":
      return methods[name](() => {
        seen.push(name);
        then();
      });
    case "onAfterVerify":
      return methods[name](({ result }) => {
        seen.push(`${name}: ${result.isValid}`);
        return then();
      });
    case "onAfterSettle":
      return methods[name](({ result }) => {
        seen.push(`${name}: ${result.success} ${result.transaction}`);
        return then();
      });
    case "onVerifyFailure":
    case "onSettleFailure":
      return methods[name](({ error }) => {
        seen.push(`${name}: ${error.message}`);
        return then();
      });
  }
}

function watchAll(then?: () => unknown): void {
  const names: (keyof HookSet)[] = [
    "onBeforeVerify",
    "onAfterVerify",
    "onVerifyFailure",
    "onBeforeSettle",
    "onAfterSettle",
    "onSettleFailure",
  ];
  for (const name of names) watch(name, then);
}

const answer =
  <T>(result: T) =>
  () => {
    seen.push("work");
    return Promise.resolve(result);
  };
const fault = () => Promise.reject(new Error("chain unreachable"));
const explode = () => {
  throw new Error("hook broke");
};

describe("a hook around verify", () => {
  test("runs before and after a valid payment", async () => {
    watchAll();
    expect(await hooks.aroundVerify(context, answer(valid))).toBe(valid);
    expect(seen).toEqual(["onBeforeVerify", "work", "onAfterVerify: true"]);
  });

  test("runs after an invalid payment, as a failure", async () => {
    watchAll();
    expect(await hooks.aroundVerify(context, answer(invalid))).toBe(invalid);
    expect(seen).toEqual([
      "onBeforeVerify",
      "work",
      "onAfterVerify: false",
      "onVerifyFailure: invalid_exact_evm_signature: not the payer's",
    ]);
  });

  test("runs after an internal fault, as a failure, and the fault is rethrown", async () => {
    watchAll();
    await expect(hooks.aroundVerify(context, fault)).rejects.toThrow("chain unreachable");
    expect(seen).toEqual(["onBeforeVerify", "onVerifyFailure: chain unreachable"]);
  });

  test("refuses the payment by aborting, with its reason, before any check", async () => {
    hooks.methods(() => undefined).onBeforeVerify(() => ({ abort: true, reason: "blocked_payer" }));
    watchAll();
    expect(await hooks.aroundVerify(context, answer(valid))).toMatchObject({
      isValid: false,
      invalidReason: "blocked_payer",
    });
    expect(seen[0]).toBe("onAfterVerify: false");
    expect(seen).not.toContain("work");
    expect(seen).not.toContain("onBeforeVerify");
  });

  test("refuses the payment by throwing, without the error's text in the answer", async () => {
    hooks.methods(() => undefined).onBeforeVerify(explode);
    const result = await hooks.aroundVerify(context, answer(valid));
    expect(result).toMatchObject({ isValid: false, invalidReason: "payment_refused" });
    expect(JSON.stringify(result)).not.toContain("hook broke");
    expect(seen).toEqual([]);
    expect(logged).toMatchObject([{ hook: "onBeforeVerify", err: { message: "hook broke" } }]);
  });

  test("a hook around verify that only observes has its return value ignored and its error logged", async () => {
    watch("onAfterVerify", () => ({ isValid: false, recovered: true }));
    watch("onAfterVerify", explode);
    watch("onVerifyFailure", explode);
    expect(await hooks.aroundVerify(context, answer(valid))).toBe(valid);
    expect(await hooks.aroundVerify(context, answer(invalid))).toBe(invalid);
    await expect(hooks.aroundVerify(context, fault)).rejects.toThrow("chain unreachable");
    expect(logged).toHaveLength(4);
  });
});

describe("a hook around settle", () => {
  test("runs before and after a settled payment, with its transaction", async () => {
    watchAll();
    expect(await hooks.aroundSettle(context, answer(settled))).toBe(settled);
    expect(seen).toEqual(["onBeforeSettle", "work", "onAfterSettle: true 0x1"]);
  });

  test("runs after a failed settlement, as a failure", async () => {
    watchAll();
    expect(await hooks.aroundSettle(context, answer(failed))).toBe(failed);
    expect(seen.slice(2)).toEqual([
      "onAfterSettle: false 0x2",
      "onSettleFailure: invalid_exact_evm_transaction_failed",
    ]);
  });

  test("refuses by aborting or throwing, and no transaction is sent", async () => {
    const methods = hooks.methods(() => undefined);
    let refuse: () => { abort: true; reason: string } = () => ({ abort: true, reason: "closed" });
    methods.onBeforeSettle(() => refuse());
    expect(await hooks.aroundSettle(context, answer(settled))).toMatchObject({
      success: false,
      errorReason: "closed",
      transaction: "",
      network: "eip155:9745",
    });
    refuse = explode;
    expect(await hooks.aroundSettle(context, answer(settled))).toMatchObject({
      success: false,
      errorReason: "payment_refused",
    });
    expect(seen).toEqual([]);
  });

  test("is skipped for a settlement that has already begun", async () => {
    hooks.methods(() => undefined).onBeforeSettle(explode);
    const isBegun = async () => true;
    expect(await hooks.aroundSettle(context, answer(settled), isBegun)).toBe(settled);
    expect(logged).toEqual([]);
  });

  test("a hook around settle that throws leaves a settled payment settled", async () => {
    watch("onAfterSettle", explode);
    watch("onSettleFailure", explode);
    expect(await hooks.aroundSettle(context, answer(settled))).toBe(settled);
    await expect(hooks.aroundSettle(context, fault)).rejects.toThrow("chain unreachable");
  });
});

test("hooks run in the order of their addition, those of the options first", async () => {
  const first = createHooks({
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    hooks: { onAfterVerify: () => void seen.push("first") },
  });
  interface Chainable extends HookMethods<Chainable> {
    name: string;
  }
  const self: Chainable = { name: "facilitator", ...first.methods(() => self) };
  const chained = self
    .onAfterVerify(async () => void seen.push("second"))
    .onAfterVerify(() => void seen.push("third"));
  expect(chained).toBe(self);
  await first.aroundVerify(context, answer(valid));
  expect(seen).toEqual(["work", "first", "second", "third"]);
});
