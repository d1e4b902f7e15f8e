import { formatDecimal } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import type { Timeline } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { firstDigits, toWhole } from "../parts/amounts.ts";
import { Copyable, Money, networkName, State, Time } from "../parts/format-parts.tsx";
import { networks } from "../parts/networks.ts";
import { Facts, Page } from "../parts/page.tsx";
import { Fault, View } from "../parts/states.tsx";
import { useAttempt } from "../parts/use-attempt.ts";
import { PaymentMessages } from "./payment-messages.tsx";
import { PaymentSteps } from "./payment-steps.tsx";
import { printReceipt } from "./print-receipt.ts";
import { RefundDialog } from "./refund-dialog.tsx";

/** A payment, from its offer to its end, and what was given back. */
export function Payment({ id }: { id: string }) {
  const loaded = useOperation("payments.timeline", { id });
  return (
    <View of={loaded} lines={8}>
      {(timeline) => <Shown timeline={timeline} />}
    </View>
  );
}

function Shown({ timeline }: { timeline: Timeline }) {
  const { payment } = timeline;
  const mayAct = useMayAct();
  const [isRefunding, setIsRefunding] = useState(false);
  const receipt = useAttempt();
  const earlier = timeline.refunds.filter(({ state }) => state !== "void");
  const refundable = BigInt(payment.value) - sumOf(earlier);
  const isPaid = payment.confirmedAt !== null && !payment.isPruned;
  return (
    <Page
      title="Payment"
      actions={
        <>
          {payment.confirmedAt !== null && (
            <button type="button" onClick={() => void receipt.run(() => printReceipt(payment.id))}>
              Print the receipt
            </button>
          )}
          {mayAct && isPaid && refundable > 0n && (
            <button type="button" onClick={() => setIsRefunding(true)}>
              Refund
            </button>
          )}
        </>
      }
    >
      {receipt.error && <Fault error={receipt.error} />}
      <p class="figure">
        <Money money={payment} /> <State state={stateOf(payment, refundable)} />
      </p>
      <p class="soft">
        <bdi>{payment.route ?? "A route whose name is forgotten"}</bdi> ·{" "}
        <Time at={payment.createdAt} />
      </p>
      <div class="columns section">
        <section>
          <h2>Timeline</h2>
          <PaymentSteps timeline={timeline} />
        </section>
        <section>
          <h2>Details</h2>
          <Details payment={payment} />
        </section>
      </div>
      <PaymentMessages timeline={timeline} />
      {isRefunding && (
        <RefundDialog
          payment={payment}
          earlier={earlier}
          refundable={refundable}
          onClose={() => setIsRefunding(false)}
        />
      )}
    </Page>
  );
}

/** A payment whose refund has begun keeps its own state: the refund's amount is the other half. */
function stateOf({ refundedAt, state }: Timeline["payment"], refundable: bigint): string {
  if (refundedAt === null) return state;
  return refundable > 0n ? "partly refunded" : "refunded";
}

function Details({ payment }: { payment: Timeline["payment"] }) {
  return (
    <Facts
      facts={[
        ["Id", <Copyable key="id" text={payment.id} what="id" />],
        ["Resource", <bdi key="resource">{payment.resource ?? "–"}</bdi>],
        ["Buyer", <Copyable key="payer" text={payment.payer} what="address" />],
        ["Paid to", <Copyable key="payTo" text={payment.payTo} what="address" />],
        ["Network", networkName(payment.network)],
        ["Token", <Copyable key="asset" text={payment.asset} what="address of the token" />],
        ["Transaction", <Copyable key="tx" text={payment.transaction} what="hash" />],
        ["Block", payment.block ?? "–"],
        ["Nonce", <Copyable key="nonce" text={payment.nonce} what="nonce" />],
        ["Wire", payment.wire ?? "–"],
        ["Share of gas", <Gas key="gas" payment={payment} />],
        ["Handler runs", payment.runs],
        [
          "Valid before",
          payment.validBefore === "forever" ? (
            "forever"
          ) : (
            <Time key="valid" at={payment.validBefore} />
          ),
        ],
        ...(payment.reason === null
          ? []
          : [["Reason", <code key="reason">{payment.reason}</code>] as const]),
      ]}
    />
  );
}

function sumOf(refunds: Timeline["refunds"]): bigint {
  return refunds.reduce((sum, { value }) => sum + BigInt(value), 0n);
}

const coinDecimals = 18;

/** In the chain's coin, by its first digits: all are on hover. */
function Gas({ payment: { gasCost, network } }: { payment: Timeline["payment"] }) {
  if (gasCost === null) return <>–</>;
  const whole = toWhole(gasCost, coinDecimals);
  const unit = networks[network]?.coin ?? "of the chain's coin";
  return (
    <span class="figures" title={`${whole} ${unit}`}>
      {formatDecimal(firstDigits(whole, 4))} <span class="unit">{unit}</span>
    </span>
  );
}
