import { shorten } from "@coinslot/pages/format";
import type { Timeline } from "../api/operations.ts";
import { Copyable, Money, networkName, Time } from "../parts/format-parts.tsx";

type Step = Timeline["steps"][number];

/** Words and colours of the known steps. A later release may have more. */
const steps: Readonly<Record<string, readonly [title: string, tone?: string]>> = {
  reserved: ["Reserved"],
  queued: ["Queued"],
  submitted: ["Sent to the chain"],
  replaced: ["Replaced by a higher fee", "warn"],
  confirmed: ["Confirmed", "good"],
  reverted: ["Taken back by a reorganisation", "bad"],
  lost: ["Lost by a reorganisation deeper than final", "bad"],
  failed: ["Failed", "bad"],
  expired: ["Expired", "bad"],
  released: ["Released: nothing was charged"],
  final: ["Final", "good"],
  delivered: ["Answer delivered", "good"],
  "refund-created": ["Refund begun", "warn"],
  "refund-signed": ["Refund signed", "warn"],
  "refund-confirmed": ["Refund confirmed", "warn"],
  "refund-final": ["Refund final", "warn"],
  event: ["Event"],
  "webhook-delivered": ["Webhook delivered"],
  "webhook-dead": ["Webhook given up", "bad"],
  command: ["Command of the operator"],
};

/** Steps that stand in the table of webhooks. */
const elsewhere = new Set(["event", "webhook-delivered"]);

/** The payment's way: each step with its doer. */
export function PaymentSteps({ timeline }: { timeline: Timeline }) {
  const shown = timeline.steps.filter(({ kind }) => !elsewhere.has(kind));
  return (
    <ol class="timeline">
      <OfferStep offer={timeline.offer} />
      {shown.map((step, index) => {
        const [title = step.kind, tone = ""] = steps[step.kind] ?? [];
        return (
          <li key={`${step.at} ${step.kind} ${index}`} class={tone}>
            <p class="what">
              <strong>{title}</strong>
              <Time at={step.at} />
            </p>
            <p class="soft">
              <Doer by={step.by} />
              <FactsOf step={step} />
            </p>
          </li>
        );
      })}
    </ol>
  );
}

/** The first step. An offer leaves no row: its terms are known by the payment that took it. */
function OfferStep({ offer }: { offer: Timeline["offer"] }) {
  const { at, route, payTo, network, wire, scheme } = offer;
  return (
    <li>
      <p class="what">
        <strong>Offered</strong>
        {at === null ? <span class="soft">time not known</span> : <Time at={at} />}
      </p>
      <p class="soft">
        <span class="fact">
          <Money money={offer} />
        </span>
        <span class="fact">{networkName(network)}</span>
        {payTo !== null && (
          <span class="fact">
            to <Copyable text={payTo} what="address" />
          </span>
        )}
        {route !== null && (
          <span class="fact">
            route <bdi>{route}</bdi>
          </span>
        )}
        {wire !== null && <span class="fact">wire {wire}</span>}
        <span class="fact">scheme {scheme}</span>
      </p>
      {at === null && (
        <p class="soft">An offer leaves no row, and so no time. These are the accepted terms.</p>
      )}
    </li>
  );
}

function Doer({ by }: { by: Step["by"] }) {
  if (by === null) return null;
  if (by.kind === "chain") return <span class="fact">{networkName(by.name)}</span>;
  if (by.kind === by.name) return <span class="fact">by the {by.kind}</span>;
  return (
    <span class="fact" title={by.name}>
      by {by.kind} <bdi>{by.name.startsWith("0x") ? shorten(by.name) : by.name}</bdi>
    </span>
  );
}

/** Facts of a step, the long ones to be copied. Texts of buyers stay texts. */
function FactsOf({ step: { facts } }: { step: Step }) {
  return (
    <>
      {Object.entries(facts).map(([name, fact]) => (
        <span key={name} class="fact">
          {name}{" "}
          {typeof fact === "string" && /^(0x[0-9a-f]{16,}|[0-9a-f]{44})$/.test(fact) ? (
            <Copyable text={fact} what={name} />
          ) : (
            <bdi class="figures">{fact}</bdi>
          )}
        </span>
      ))}
    </>
  );
}
