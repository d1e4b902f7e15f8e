import type { Timeline } from "../api/operations.ts";
import { Copyable, networkName, State, Time } from "../parts/format-parts.tsx";
import { Json } from "../parts/json.tsx";
import { type Column, Table } from "../parts/table.tsx";

type Transaction = Timeline["transactions"][number];
type Delivery = Timeline["events"][number]["deliveries"][number] & { type: string; at: string };

const deliveries: readonly Column<Delivery>[] = [
  { title: "Event", cell: ({ type }) => type },
  { title: "Receiver", cell: ({ receiver, url }) => <bdi class="cut">{url ?? receiver}</bdi> },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Attempts", isNumeric: true, cell: ({ attempts }) => attempts },
  { title: "Error", isExtra: true, cell: ({ error }) => <bdi>{error ?? "–"}</bdi> },
  { title: "Made", isExtra: true, cell: ({ at }) => <Time at={at} /> },
];

/** Transactions with their replacements, the signed messages decoded, and webhooks. */
export function PaymentMessages({ timeline }: { timeline: Timeline }) {
  const { transactions, authorization, events } = timeline;
  const sent = events.flatMap(({ type, at, deliveries: each }) =>
    each.map((delivery) => ({ ...delivery, type, at })),
  );
  return (
    <>
      {transactions.length > 0 && (
        <section class="section">
          <h2>Transactions</h2>
          {transactions.map((transaction) => (
            <TransactionOf key={transaction.id} transaction={transaction} />
          ))}
        </section>
      )}
      <section class="section no-print">
        <h2>Messages</h2>
        <Authorization authorization={authorization} />
      </section>
      {sent.length > 0 && (
        <section class="section no-print">
          <h2>Webhooks</h2>
          <Table
            caption="Webhooks of this payment"
            columns={deliveries}
            rows={sent}
            keyOf={({ receiver, at, type }) => `${receiver} ${at} ${type}`}
          />
        </section>
      )}
    </>
  );
}

function TransactionOf({ transaction }: { transaction: Transaction }) {
  const { forms, network, relayer, nonce, state, gasUsed, gasLimit, payments } = transaction;
  return (
    <details class="message">
      <summary>
        {networkName(network)} · nonce {nonce} ·{" "}
        {payments === 1 ? "one payment" : `${payments} payments`} · gas {gasUsed ?? "–"} of{" "}
        {gasLimit} <State state={state} />
      </summary>
      <p class="soft">
        Relayer <Copyable text={relayer} what="address of the relayer" />
      </p>
      {forms.length === 0 && <p class="soft">Its signed forms are pruned.</p>}
      {forms.map((form) => (
        <div key={form.hash}>
          <p>
            <Copyable text={form.hash} what="hash" /> signed <Time at={form.signedAt} />
            {form.isIncluded && " · in a block"}
          </p>
          <Json value={form} what={`Transaction ${form.hash}`} />
        </div>
      ))}
    </details>
  );
}

function Authorization({ authorization }: { authorization: Timeline["authorization"] }) {
  if (authorization === null) return <p class="soft">Nothing is signed to be sent yet.</p>;
  if (authorization === "pruned") return <p class="soft">Pruned: past their retention.</p>;
  return (
    <details class="message">
      <summary>Authorization of the buyer, decoded, without its signature</summary>
      <Json value={authorization} what="Authorization" />
    </details>
  );
}
