import { formatCount, formatDecimal } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import type { Result } from "../api/operations.ts";
import { useMayAct } from "../api/session.ts";
import { useOperation } from "../api/use-operation.ts";
import { Monies, Time } from "../parts/format-parts.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, View } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Attention } from "./attention.tsx";
import { StopDialog } from "./stop-dialog.tsx";

type TodayResult = Result<"today">;
type Figures = TodayResult["today"];

/** Money and health: what came in, what needs a person, and how it was a week ago. */
export function Today() {
  const loaded = useOperation("today", {});
  const mayAct = useMayAct();
  const [isStopping, setIsStopping] = useState(false);
  return (
    <Page
      title="Today"
      actions={
        mayAct && (
          <button type="button" onClick={() => setIsStopping(true)}>
            Stop new payments
          </button>
        )
      }
    >
      <View of={loaded} lines={8}>
        {(shown) => <Shown shown={shown} />}
      </View>
      {isStopping && <StopDialog onClose={() => setIsStopping(false)} />}
    </Page>
  );
}

function Shown({ shown }: { shown: TodayResult }) {
  const { today, lastWeek, attention, source } = shown;
  return (
    <>
      <div class="cards">
        <section class="card">
          <h2>Income</h2>
          <p class="figure">
            <Monies monies={today.income} />
          </p>
          <p class="note">
            A week ago <Monies monies={lastWeek.income} />
          </p>
        </section>
        <Count title="Payments" now={today.payments.confirmed} before={lastWeek.payments.confirmed}>
          {today.payments.open > 0 && `${formatCount(today.payments.open)} under way · `}
        </Count>
        <Count title="Refusals" now={today.refusals} before={lastWeek.refusals} />
        <Count title="Refunds" now={today.refunds.count} before={lastWeek.refunds.count} />
      </div>
      <Channels now={today.channels} before={lastWeek.channels} />
      <section class="section">
        <h2>Needs a person</h2>
        <Attention items={attention} source={source} />
      </section>
      <section class="section">
        <h2>Stages of a payment</h2>
        <Stages today={today} lastWeek={lastWeek} />
      </section>
      <p class="soft section">
        Since midnight in UTC, against the same part of the day a week ago. Read{" "}
        <Time at={shown.at} />.
      </p>
    </>
  );
}

type Charges = Figures["channels"];

/** Income of channels. Charges are summed by the day, so that a week ago is a whole one. */
function Channels({ now, before }: { now: Charges | undefined; before: Charges | undefined }) {
  if (now === undefined || before === undefined || !hasMoved(now, before)) return null;
  return (
    <section class="card section">
      <h2>Income of channels</h2>
      <p class="figure">
        <Monies monies={now.charged} />
      </p>
      <p class="note figures">
        {now.charges === 1 ? "One charge" : `${formatCount(now.charges)} charges`} ·{" "}
        {hasMoved(before) ? "In all of the day a week ago " : "None a week ago"}
        {hasMoved(before) && <Monies monies={before.charged} />}
      </p>
    </section>
  );
}

/** A day may have only taken charges of earlier ones back. */
function hasMoved(...days: readonly NonNullable<Charges>[]): boolean {
  return days.some(({ charges, charged }) => charges > 0 || charged.length > 0);
}

interface CountProps {
  title: string;
  now: number | null;
  before: number | null;
  children?: string | false;
}

function Count({ title, now, before, children }: CountProps) {
  return (
    <section class="card">
      <h2>{title}</h2>
      <p class="figure figures">{now === null ? "–" : formatCount(now)}</p>
      <p class="note figures">
        {children}
        {now === null
          ? "Not counted."
          : `A week ago ${before === null ? "–" : formatCount(before)}`}
      </p>
    </section>
  );
}

interface StageRow {
  stage: string;
  count: number;
  p50Ms: number;
  p99Ms: number;
  before: { p50Ms: number; p99Ms: number } | undefined;
}

const stageNames: Readonly<Record<string, string>> = {
  handler: "Handler: reservation to queue",
  plan: "Plan: queue to signed transaction",
  confirm: "Confirm: transaction to block",
  deliver: "Deliver: reservation to answer",
  finalise: "Finalise: block to finality",
};

const stageColumns: readonly Column<StageRow>[] = [
  { title: "Stage", cell: ({ stage }) => stageNames[stage] ?? stage },
  { title: "p50", isNumeric: true, cell: ({ p50Ms }) => duration(p50Ms) },
  { title: "p99", isNumeric: true, cell: ({ p99Ms }) => duration(p99Ms) },
  {
    title: "p50 a week ago",
    isNumeric: true,
    isExtra: true,
    cell: ({ before }) => duration(before?.p50Ms),
  },
  {
    title: "p99 a week ago",
    isNumeric: true,
    isExtra: true,
    cell: ({ before }) => duration(before?.p99Ms),
  },
  { title: "Payments", isNumeric: true, isExtra: true, cell: ({ count }) => formatCount(count) },
];

function Stages({ today, lastWeek }: { today: Figures; lastWeek: Figures }) {
  const rows = today.stages
    .filter(({ count }) => count > 0)
    .map((stage) => ({
      ...stage,
      before: lastWeek.stages.find((each) => each.stage === stage.stage && each.count > 0),
    }));
  if (rows.length === 0) return <Empty title="No payment was measured today." />;
  return <Table caption="Stages" columns={stageColumns} rows={rows} keyOf={({ stage }) => stage} />;
}

function duration(ms: number | undefined) {
  if (ms === undefined) return <span class="soft">–</span>;
  return ms < 1000
    ? `${Math.round(ms)}\u00a0ms`
    : `${formatDecimal((ms / 1000).toFixed(1))}\u00a0s`;
}
