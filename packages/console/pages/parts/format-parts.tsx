import {
  formatAge,
  formatAmount,
  formatDecimal,
  formatTime,
  shorten,
} from "@coinslot/pages/format";
import { useEffect, useState } from "preact/hooks";
import { createStore, useStore } from "../api/store.ts";
import { networks } from "./networks.ts";

/** Money of the API: in whole tokens where the token is known. */
export interface MoneyLike {
  asset: string;
  symbol: string | null;
  value: string;
  amount: string | null;
}

/** An amount with its token. Figures are tabular, so that columns align. */
export function Money({ money }: { money: MoneyLike }) {
  return (
    <span class="money figures">
      {money.amount === null ? formatAmount(money.value, 0) : formatDecimal(money.amount)}{" "}
      <span class="unit">{tokenName(money)}</span>
    </span>
  );
}

/** Ticker of a token, or its shortened address. A value without decimals says so. */
export function tokenName({ asset, symbol, amount }: Omit<MoneyLike, "value">): string {
  const name = symbol ?? (asset === "native" ? "native coin" : shorten(asset));
  return amount === null ? `units of ${name}` : name;
}

/** Ages grow by themselves: one clock for all of a page. */
const minute = createStore(Date.now());
setInterval(() => minute.set(Date.now()), 20_000);

/** A relative time, with the exact one on hover. */
export function Time({ at }: { at: string | number | null | undefined }) {
  const tick = useStore(minute);
  if (at === null || at === undefined) return <span class="soft">–</span>;
  const now = Math.max(tick, Date.now());
  return (
    <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
      {formatAge(at, now)}
    </time>
  );
}

/** A shortened address, hash or id, which a click copies. */
export function Copyable({ text, what }: { text: string | null | undefined; what: string }) {
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setIsCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  if (text === null || text === undefined) return <span class="soft">–</span>;
  return (
    <button
      type="button"
      class="copyable"
      title={`${text}: copy`}
      onClick={async () => {
        await navigator.clipboard?.writeText(text);
        setIsCopied(true);
      }}
    >
      <span class="aside">{isCopied ? "" : `Copy the ${what} `}</span>
      {isCopied ? "Copied" : shorten(text)}
    </button>
  );
}

const tones: Readonly<Record<string, string>> = {
  confirmed: "good",
  final: "good",
  delivered: "good",
  active: "good",
  ready: "good",
  live: "good",
  ok: "good",
  enabled: "good",
  done: "good",
  open: "good",
  locked: "accent",
  withdrawing: "warn",
  refunding: "warn",
  owing: "bad",
  queued: "accent",
  submitted: "accent",
  scheduled: "accent",
  pending: "accent",
  sent: "accent",
  review: "warn",
  waiting: "warn",
  low: "warn",
  lagging: "warn",
  resting: "warn",
  retiring: "warn",
  exhausted: "bad",
  stalled: "bad",
  unreachable: "bad",
  "wrong-chain": "bad",
  unsigned: "warn",
  manual: "warn",
  refunded: "warn",
  "partly refunded": "warn",
  "refund begun": "warn",
  blocked: "warn",
  stale: "warn",
  refused: "warn",
  begun: "warn",
  reopened: "warn",
  failed: "bad",
  lost: "bad",
  dead: "bad",
  expired: "quiet",
  released: "quiet",
  reserved: "quiet",
};

/** A state in its colour, and always in its word. */
export function State({ state }: { state: string }) {
  return <span class={`state ${tones[state] ?? "quiet"}`}>{state}</span>;
}

/** A network by its name, where it is a known one. */
export function networkName(network: string): string {
  return networks[network]?.name ?? network;
}

/** Amounts of several tokens, one a line. */
export function Monies({ monies }: { monies: readonly (MoneyLike & { network: string })[] }) {
  if (monies.length === 0) return <span class="soft">–</span>;
  return (
    <>
      {monies.map((money) => (
        <span
          key={`${money.network} ${money.asset}`}
          class="one"
          title={networkName(money.network)}
        >
          <Money money={money} />
        </span>
      ))}
    </>
  );
}
