import { useState } from "preact/hooks";
import type { Result } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { Copyable, Money, networkName, State, Time } from "../parts/format-parts.tsx";
import { Facts, Page } from "../parts/page.tsx";
import { View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { ClaimDialog } from "./claim-dialog.tsx";

type Details = Result<"channels.get">;
type Step = Details["steps"][number];
type Day = Details["days"][number];

const stepColumns: readonly Column<Step>[] = [
  { title: "Step", cell: ({ kind }) => kind },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  {
    title: "Amount",
    isNumeric: true,
    cell: ({ amount }) => (amount === null ? "–" : <Money money={amount} />),
  },
  {
    title: "Transaction",
    isExtra: true,
    cell: ({ transaction, reason }) =>
      reason === null ? <Copyable text={transaction} what="hash" /> : <code>{reason}</code>,
  },
  { title: "Time", cell: ({ at }) => <Time at={at} /> },
];

const dayColumns: readonly Column<Day>[] = [
  { title: "Day", cell: ({ day }) => day },
  { title: "Charges", isNumeric: true, cell: ({ charges }) => charges },
  { title: "Charged", isNumeric: true, cell: ({ charged }) => <Money money={charged} /> },
];

/** A channel: its money, its terms, and what happened on it. */
export function Channel({ id }: { id: string }) {
  const loaded = useOperation("channels.get", { id });
  return (
    <View of={loaded} lines={8}>
      {(details) => <Shown details={details} />}
    </View>
  );
}

function Shown({ details }: { details: Details }) {
  const { channel, steps, days } = details;
  const mayAct = useMayAct();
  const [isClaiming, setIsClaiming] = useState(false);
  return (
    <Page
      title="Channel"
      actions={
        mayAct &&
        channel.unclaimed.value !== "0" && (
          <button type="button" onClick={() => setIsClaiming(true)}>
            Claim
          </button>
        )
      }
    >
      <p class="figure">
        <Money money={channel.charged} /> <State state={channel.state} />
      </p>
      <p class="soft">
        charged since <Time at={channel.createdAt} />
      </p>
      <div class="columns section">
        <section>
          <h2>Timeline</h2>
          {steps.length === 0 ? (
            <p class="soft">Nothing happened on the chain yet.</p>
          ) : (
            <Table
              caption="Claims, refunds and deposits"
              columns={stepColumns}
              rows={steps}
              keyOf={({ at, kind, transaction }) => `${at} ${kind} ${transaction}`}
            />
          )}
          <section class="section">
            <h2>Charges by day</h2>
            <Table
              caption="Charges by day"
              columns={dayColumns}
              rows={days}
              keyOf={(row) => row.day}
            />
          </section>
        </section>
        <section>
          <h2>Details</h2>
          <Terms channel={channel} />
        </section>
      </div>
      {isClaiming && <ClaimDialog channel={channel.id} onClose={() => setIsClaiming(false)} />}
    </Page>
  );
}

function Terms({ channel }: { channel: Details["channel"] }) {
  const { withdrawal, refusal } = channel;
  return (
    <Facts
      facts={[
        ["Id", <Copyable key="id" text={channel.id} what="id" />],
        ["Claimed", <Money key="claimed" money={channel.claimed} />],
        ["Unclaimed", <Money key="unclaimed" money={channel.unclaimed} />],
        ["Unclaimed since", <Time key="since" at={channel.unclaimedSince} />],
        ["At risk", <Money key="risk" money={channel.atRisk} />],
        ["Lost", <Money key="lost" money={channel.lost} />],
        ["Locked", <Money key="locked" money={channel.locked} />],
        [
          "Withdrawal",
          withdrawal === null ? (
            "–"
          ) : (
            <span key="withdrawal">
              <Money money={withdrawal.amount} />, deadline <Time at={withdrawal.deadline} />
            </span>
          ),
        ],
        ["Claim refused", refusal === null ? "–" : <code key="refusal">{refusal.error}</code>],
        ["Last charge", <Time key="last" at={channel.lastChargeAt} />],
        ["Payer", <Copyable key="payer" text={channel.payer} what="address" />],
        ["Signs vouchers", <Copyable key="signer" text={channel.payerAuthorizer} what="address" />],
        ["Paid to", <Copyable key="receiver" text={channel.receiver} what="address" />],
        [
          "Signs claims",
          <Copyable key="authorizer" text={channel.receiverAuthorizer} what="address" />,
        ],
        ["Withdraw delay", `${channel.withdrawDelaySeconds} s`],
        ["Network", networkName(channel.network)],
        ["Escrow", <Copyable key="escrow" text={channel.contract} what="address" />],
        ["Token", <Copyable key="token" text={channel.token} what="address of the token" />],
      ]}
    />
  );
}
