import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import type { OperatorPlace } from "../operators/run-operation.ts";
import { runOperation } from "../operators/run-operation.ts";
import { idOf, settle } from "../testing/settling-actions.ts";
import {
  type Engine,
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../testing/settling-devnet.ts";
import type { SignedRefunds } from "./refund-file.ts";
import {
  approveRefundOperation,
  createRefundOperation,
  exportRefundsOperation,
  getRefundOperation,
  importRefundsOperation,
  listRefundsOperation,
} from "./refund-operations.ts";
import { signRefunds } from "./sign-refunds.ts";

const key = "k".repeat(32);
const float = privateKeyToAccount(generatePrivateKey());
const stranger = privateKeyToAccount(generatePrivateKey());
const patience = { timeout: 60_000, interval: 50 };
const boundSchema = z.object({ address: z.object({ port: z.number() }) });

let here: SettlingDevnet | undefined;
afterEach(async () => {
  await here?.stop();
  here = undefined;
});

/** A seller without the float's key, that serves its operator over HTTP. */
async function begin(engine: Engine) {
  const at = await startSettlingDevnet(engine);
  here = at;
  await at.devnet.mint({ to: float.address, amount: 10_000n });
  let port = 0;
  const silent = () => undefined;
  const facilitator = await at.start({
    network: { finalAfter: 2 },
    refunds: { address: float.address },
    operators: { port: 0, key },
    logger: {
      debug: silent,
      warn: silent,
      error: silent,
      info(fields) {
        port = boundSchema.safeParse(fields).data?.address.port ?? port;
      },
    },
  });
  const place: OperatorPlace = { url: `http://127.0.0.1:${port}`, key };
  return { at, facilitator, place };
}

async function settled(facilitator: CoinslotFacilitator, { pay }: SettlingDevnet) {
  const paid = await pay();
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  const { payments } = await facilitator.payments.list();
  const payment = payments.find(({ authorization }) => authorization.nonce === idOf(paid).nonce);
  if (payment === undefined) throw new Error("The payment is not listed");
  return payment.id;
}

/** Mines until the refund is in this state. */
function becomes({ devnet }: SettlingDevnet, place: OperatorPlace, id: string, state: string) {
  return vi.waitFor(async () => {
    await devnet.mine(1);
    const refund = await runOperation(place, getRefundOperation, { id });
    expect(refund).toMatchObject({ state });
    return refund;
  }, patience);
}

describe.each(enginesByDay("sqlite"))("commands for refunds on %s", (engine) => {
  it("create, export, import and show a refund that is signed elsewhere", async () => {
    const { at, facilitator, place } = await begin(engine);
    const payment = await settled(facilitator, at);
    const request = { payment, amount: "600", reason: "late", idempotencyKey: "one" };
    const created = await runOperation(place, createRefundOperation, request);
    expect(created).toMatchObject({ payment, amount: 600n, requested: 600n, reason: "late" });
    // Beside the seller, by socket or in the database, and repeated.
    const again = await runOperation(at.ledger.url, createRefundOperation, request);
    expect(again.id).toBe(created.id);
    await becomes(at, place, created.id, "unsigned");

    const unsigned = await runOperation(place, exportRefundsOperation, {});
    expect(unsigned.refunds).toMatchObject([{ id: created.id, amount: "600", n: 1 }]);
    await expect(signRefunds(unsigned, stranger)).rejects.toThrow(/to be signed by/);
    const signed = await signRefunds(unsigned, float);
    const before = await at.balanceOf(at.devnet.accounts.buyer.address);

    for (const [file, message] of tampered(signed)) {
      const result = await runOperation(place, importRefundsOperation, file);
      expect(result).toMatchObject({ sent: [], refused: [{ message }] });
    }
    // Changed on the way to the signer: the server signs for its own row alone.
    for (const term of [
      { amount: "10000" },
      { payment: { ...firstOf(unsigned).payment, payer: stranger.address } },
      { n: 2 },
      { domain: { name: "Another", version: "1" } },
    ]) {
      const changed = { ...unsigned, refunds: [{ ...firstOf(unsigned), ...term }] };
      const result = await runOperation(
        place,
        importRefundsOperation,
        await signRefunds(changed, float),
      );
      expect(result).toMatchObject({
        sent: [],
        refused: [{ message: "The signature is not the float's for this refund" }],
      });
    }
    const byStranger = await signRefunds({ ...unsigned, float: stranger.address }, stranger);
    for (const forged of [byStranger, { ...byStranger, float: float.address }]) {
      expect(await runOperation(place, importRefundsOperation, forged)).toMatchObject({
        sent: [],
        refused: [{ id: created.id }],
      });
    }

    const imported = await runOperation(place, importRefundsOperation, signed);
    expect(imported).toMatchObject({ sent: [{ id: created.id, state: "sent" }], refused: [] });
    // A file that is submitted twice sends nothing twice.
    const replayed = await runOperation(place, importRefundsOperation, signed);
    expect(replayed).toMatchObject({ sent: [{ id: created.id }], refused: [] });
    await becomes(at, place, created.id, "final");
    const late = await runOperation(place, importRefundsOperation, signed);
    expect(late).toMatchObject({ sent: [{ id: created.id, state: "final" }], refused: [] });
    expect(await at.balanceOf(at.devnet.accounts.buyer.address)).toBe(before + 600n);

    const listed = await runOperation(at.ledger.url, listRefundsOperation, { payment });
    expect(listed.refunds).toMatchObject([{ id: created.id, state: "final", amount: 600n }]);
    const rest = { payment, idempotencyKey: "rest" };
    expect(await runOperation(place, createRefundOperation, rest)).toMatchObject({ amount: 400n });
  }, 120_000);

  it("refuse in words and terms, over HTTP and beside the ledger", async () => {
    const { at, facilitator, place } = await begin(engine);
    const payment = await settled(facilitator, at);
    for (const each of [place, at.ledger.url]) {
      const create = (request: { payment: string; amount?: string }) =>
        runOperation(each, createRefundOperation, { ...request, idempotencyKey: "one" });
      await expect(create({ payment, amount: "1001" })).rejects.toMatchObject({
        code: "exceeds_payment",
      });
      await expect(create({ payment: "absent" })).rejects.toMatchObject({
        code: "unknown_payment",
        message: "The ledger has no payment with this id",
      });
      await expect(runOperation(each, getRefundOperation, { id: "absent" })).rejects.toMatchObject({
        code: "unknown_refund",
      });
    }
    await expect(
      runOperation(place, approveRefundOperation, { id: "absent" }),
    ).rejects.toMatchObject({ code: "unknown_refund" });
  }, 120_000);

  it("begin a refund without a running seller, which the next one pays", async () => {
    const { at, facilitator } = await begin(engine);
    const payment = await settled(facilitator, at);
    await facilitator.close();
    const request = { payment, idempotencyKey: "alone" };
    const created = await runOperation(at.ledger.url, createRefundOperation, request);
    expect(created).toMatchObject({ state: "scheduled", amount: 1_000n });
    await expect(runOperation(at.ledger.url, exportRefundsOperation, {})).rejects.toMatchObject({
      code: "no_seller",
    });
    const floatKey = generatePrivateKey();
    const { address } = privateKeyToAccount(floatKey);
    await at.devnet.mint({ to: address, amount: 1_000n });
    await at.start({ network: { finalAfter: 2 }, refunds: { privateKey: floatKey } });
    expect(await becomes(at, at.ledger.url, created.id, "final")).toMatchObject({
      float: address.toLowerCase(),
    });
    expect(await at.balanceOf(address)).toBe(0n);
  }, 120_000);
});

describe("arguments of refund commands", () => {
  it("have no member that is not known: a mistyped amount would give all back", () => {
    const { argument } = createRefundOperation;
    const known = { payment: "p", idempotencyKey: "1" };
    expect(argument.safeParse({ ...known, amount: "1" }).success).toBe(true);
    expect(argument.safeParse({ ...known, ammount: "1" }).success).toBe(false);
    // Of all refunds, and not of those that were meant.
    expect(exportRefundsOperation.argument.safeParse({ id: ["r"] }).success).toBe(false);
    expect(listRefundsOperation.argument.safeParse({ states: "review" }).success).toBe(false);
  });
});

function firstOf<Refund>({ refunds: [first] }: { refunds: Refund[] }): Refund {
  if (first === undefined) throw new Error("The file is empty");
  return first;
}

/** A signed file with each of its terms changed. */
function tampered(signed: SignedRefunds): [SignedRefunds, RegExp | string][] {
  const change = (part: Partial<SignedRefunds["refunds"][number]>): SignedRefunds => ({
    ...signed,
    refunds: signed.refunds.map((each) => ({ ...each, ...part })),
  });
  const first = firstOf(signed);
  const notTheFloats = "The signature is not the float's for this refund";
  const flipped = first.signature.endsWith("b") ? "c" : "b";
  return [
    [change({ validBefore: String(Number(first.validBefore) + 1) }), notTheFloats],
    [
      change({ signature: `${first.signature.slice(0, -1)}${flipped}` as `0x${string}` }),
      notTheFloats,
    ],
    [change({ id: "of-another-ledger" }), "The ledger has no such refund"],
  ];
}
