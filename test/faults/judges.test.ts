import type { RefundRecord } from "@coinslot/facilitator";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { AuthorizedTransfer, ChainRecord } from "./chain-record.ts";
import { findRefundViolations } from "./judge-refunds.ts";
import { findWebhookViolations, type WebhookEvidence } from "./judge-webhooks.ts";
import { planPurchases, price } from "./purchase.ts";
import { createRandom } from "./seeded-random.ts";
import type { AskedRefund } from "./support.ts";
import type { TakenEvent } from "./webhook-log.ts";
import type { ListedPayment } from "./worker-messages.ts";

const hash = `0x${"aa".repeat(32)}` as const;
const nonce = `0x${"bb".repeat(32)}` as const;
const float = privateKeyToAccount(`0x${"11".repeat(32)}`).address;
const [planned] = planPurchases({ count: 1, random: createRandom("judges"), now: 0 });
if (planned === undefined) throw new Error("unreachable");
const payer = planned.payer.address;

describe("the judge of refunds", () => {
  const asked: AskedRefund = {
    purchase: { ...planned } as AskedRefund["purchase"],
    plan: "whole",
    key: "one",
    amount: undefined,
    refunds: new Set(["r1"]),
    refusal: undefined,
  };
  const refund = {
    ...{ id: "r1", state: "final", payer, nonce, amount: price, transactionHash: hash },
  } as RefundRecord;
  const paid: AuthorizedTransfer = { to: payer, value: price, hash };

  function judge(options: {
    asked?: AskedRefund;
    refunds?: RefundRecord[];
    executed?: AuthorizedTransfer[];
    transfers?: number;
  }) {
    const executed = options.executed ?? [paid];
    const chain: Pick<ChainRecord, "authorizedBy" | "transfersFrom"> = {
      authorizedBy: () =>
        new Map(executed.map((each, index) => [index === 0 ? nonce : `0x${index}`, each])),
      transfersFrom: () => options.transfers ?? executed.length,
    };
    return findRefundViolations({
      asked: [options.asked ?? asked],
      refunds: options.refunds ?? [refund],
      float,
      chain: chain as ChainRecord,
    });
  }

  it("finds nothing in a refund that was paid once", () => expect(judge({})).toEqual([]));

  it.each([
    ["a refund that is lost", { refunds: [] }],
    ["one key for two refunds", { asked: { ...asked, refunds: new Set(["r1", "r2"]) } }],
    ["another amount", { executed: [{ ...paid, value: 1n }] }],
    ["another account", { executed: [{ ...paid, to: float }] }],
    ["a refund that was never paid", { executed: [] }],
    ["a void refund that was paid", { refunds: [{ ...refund, state: "void" }] }],
    ["a refund that never ends", { refunds: [{ ...refund, state: "waiting" }], executed: [] }],
    ["a transfer of the float without a refund", { transfers: 2 }],
    ["a second execution", { executed: [paid, paid] }],
    ["more than was paid", { asked: { ...asked, amount: price + 1n } }],
    ["a refund that nobody asked for", { refunds: [refund, { ...refund, id: "r2" }] }],
  ] satisfies [string, Parameters<typeof judge>[0]][])("finds %s", (_, options) =>
    expect(judge(options)).not.toEqual([]),
  );
});

describe("the judge of webhooks", () => {
  const told = (number: number, type: string, refund?: string): TakenEvent => ({
    id: `evt_${number}_0`,
    type,
    payment: "p1",
    refund,
  });
  const story = [
    told(1, "payment.settled"),
    told(2, "payment.reverted"),
    told(3, "payment.settled"),
    told(4, "payment.final"),
    told(5, "refund.created", "r1"),
    told(6, "refund.final", "r1"),
  ];
  const payment = { id: "p1", state: "confirmed" } as ListedPayment;
  const refund = { id: "r1", state: "final" } as RefundRecord;

  function judge(evidence: Partial<WebhookEvidence>) {
    return findWebhookViolations({
      ...{ taken: story, ledger: [payment], refunds: [refund], left: 0, foreign: 0 },
      ...evidence,
    });
  }

  it("finds nothing in events that came in order, some of them twice", () => {
    expect(judge({})).toEqual([]);
    expect(judge({ taken: [...story, ...story.slice(0, 2)] })).toEqual([]);
  });

  it.each([
    ["a lost end", { taken: story.filter(({ type }) => type !== "payment.final") }],
    ["a lost event in the middle", { taken: story.filter(({ id }) => id !== "evt_2_0") }],
    ["two events out of order", { taken: [story[1], story[0], ...story.slice(2)] as TakenEvent[] }],
    ["a refund that nothing tells of", { taken: story.slice(0, 4) }],
    [
      "an event of a payment that was never charged",
      { ledger: [{ ...payment, state: "released" }] },
    ],
    ["events that are left", { left: 1 }],
    ["a wrong signature", { foreign: 1 }],
  ] satisfies [string, Partial<WebhookEvidence>][])("finds %s", (_, evidence) =>
    expect(judge(evidence)).not.toEqual([]),
  );
});
