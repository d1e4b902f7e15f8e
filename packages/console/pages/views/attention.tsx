import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Result, StopTarget } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { networkName, Time } from "../parts/format-parts.tsx";
import { runbookPath } from "../parts/markdown.tsx";
import { Empty } from "../parts/states.tsx";
import { Link } from "../router.tsx";
import { ResumeDialog, targetOf } from "./stop-dialog.tsx";

type Item = Result<"today">["attention"][number];

const words: Readonly<Record<string, string>> = {
  ledger_failing: "The ledger fails",
  final_reorganised: "A reorganisation has undone final payments",
  relayer_exhausted: "A relayer has no gas money left",
  chain_stalled: "A chain stands still",
  signer_failing: "A signer fails",
  transaction_stuck: "A transaction is stuck",
  queue_stuck: "Payments wait too long",
  disk_nearly_full: "The disk is nearly full",
  channels_deadline: "A payer can soon take unclaimed money of its channel away",
  channels_unwatched: "Channels are not watched",
  channels_refused: "Channels cannot be claimed",
  relayer_low: "A relayer's gas money runs out",
  relayer_keyless: "A relayer has no key here",
  endpoint_failing: "A node fails",
  float_low: "The float account is low",
  refunds_review: "Refunds wait for your word",
  refunds_unsigned: "Refunds wait for a signature",
  refunds_blocked: "Refunds are blocked by the token",
  refunds_manual: "Refunds wait for your transaction",
  refunds_late: "Refunds are late by an hour",
  webhooks_late: "Webhooks are late",
  webhooks_dead: "Webhooks were given up",
  payments_stopped: "New payments are stopped",
  refunds_stopped: "New refunds of a float are stopped",
  refunds_limited: "Refunds have reached their limit of the day",
  books_unclosed: "The books of a past month are open",
};

const tones: Readonly<Record<string, string>> = { critical: "bad", warning: "warn" };

const unasked = "No running seller was asked: balances, chains and disk are not known.";

interface AttentionProps {
  items: readonly Item[];
  source: Result<"today">["source"];
}

/** Things that need a person, the most urgent first, each with its runbook. */
export function Attention({ items, source }: AttentionProps) {
  const [resumed, setResumed] = useState<StopTarget>();
  return (
    <>
      <Items items={items} source={source} onResume={setResumed} />
      {resumed !== undefined && (
        <ResumeDialog target={resumed} onClose={() => setResumed(undefined)} />
      )}
    </>
  );
}

interface ItemsProps extends AttentionProps {
  onResume: (target: StopTarget) => void;
}

function Items({ items, source, onResume }: ItemsProps) {
  const mayAct = useMayAct();
  if (items.length === 0 && source === "ledger") {
    return <Empty title="Nothing in the ledger.">{unasked}</Empty>;
  }
  if (items.length === 0) return <Empty title="Nothing. All is well." />;
  return (
    <>
      {source === "ledger" && <p class="soft">{unasked}</p>}
      <ul class="list">
        {items.map((item) => {
          const target = targetOf(item);
          return (
            <li key={`${item.code} ${item.network} ${item.subject}`}>
              <span class={`state ${tones[item.urgency] ?? "quiet"}`}>{item.urgency}</span>
              <div>
                <p>
                  <strong>{words[item.code] ?? item.code}</strong>
                  {item.count > 1 && <span class="figures"> · {item.count}</span>}
                </p>
                <p class="soft">
                  <Facts item={item} />
                </p>
                <p class="actions">
                  <RunbookLink runbook={item.runbook} />
                  <Next item={item} />
                  {mayAct && target !== undefined && (
                    <button type="button" onClick={() => onResume(target)}>
                      Resume
                    </button>
                  )}
                </p>
              </div>
              {item.since !== null && <Time at={item.since} />}
            </li>
          );
        })}
      </ul>
    </>
  );
}

/** Each text has its own direction: a name from right to left turns nothing beside it around. */
function Facts({ item: { network, subject, detail } }: { item: Item }) {
  const texts = [network && networkName(network), subject, detail].filter(Boolean);
  return (
    <>
      {texts.map((text, index) => (
        <Fragment key={text}>
          {index > 0 && " · "}
          <bdi>{text}</bdi>
        </Fragment>
      ))}
    </>
  );
}

/** Pages where an item can be dealt with. */
const places: readonly (readonly [prefix: string, path: string, title: string])[] = [
  ["refunds_review", "/refunds?state=review", "Open these refunds"],
  ["refunds_blocked", "/refunds?state=blocked", "Open these refunds"],
  ["refunds_manual", "/refunds?state=manual", "Open these refunds"],
  ["refunds_unsigned", "/refunds?state=unsigned", "Open these refunds"],
  ["refunds_late", "/refunds", "Open the refunds"],
  ["webhooks_", "/webhooks", "Open the webhooks"],
  ["books_unclosed", "/books", "Open the books"],
];

function RunbookLink({ runbook }: { runbook: string }) {
  const [page = "", section] = runbook.split("#", 2);
  return <Link to={runbookPath(page, section)}>Runbook</Link>;
}

function Next({ item: { code } }: { item: Item }) {
  const [, path, title] = places.find(([prefix]) => code.startsWith(prefix)) ?? [];
  return path === undefined ? null : <Link to={path}>{title}</Link>;
}
