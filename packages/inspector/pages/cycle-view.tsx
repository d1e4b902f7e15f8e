import { formatTime, shorten } from "@coinslot/pages/format";
import { useEffect, useState } from "preact/hooks";
import type { CycleDetails } from "../src/page/page-server.ts";
import type { ReplayReport } from "../src/replay/replay-cycle.ts";
import { ApiError, replayCycle } from "./client.ts";
import { Copy } from "./copy.tsx";
import { StateMark } from "./cycle-list.tsx";
import { LegView } from "./leg-view.tsx";
import { Sequence } from "./sequence.tsx";

/** All of a cycle. */
export function CycleView({ details, canReplay }: { details: CycleDetails; canReplay: boolean }) {
  const { summary, cycle, steps, commands } = details;
  const { id, state, status, price, network, payer, transaction, gasUsed, failed } = summary;
  return (
    <article>
      <h2 class="target">
        {summary.method} {summary.target}
      </h2>
      <p class="facts figures">
        <StateMark state={state} status={status} />
        {price && <b>{price}</b>}
        {network && <span>{network}</span>}
        {payer && <Copy text={payer} shown={shorten(payer)} label="Payer" />}
        {transaction && (
          <Copy text={transaction} shown={shorten(transaction)} label="Transaction" />
        )}
        {gasUsed && <span>{gasUsed} gas</span>}
        <span class="soft">{formatTime(summary.startedAt)}</span>
      </p>
      {failed && (
        <p class="banner bad" role="note">
          <b>Failed check: {failed.check}.</b> {failed.says}
        </p>
      )}
      <Sequence steps={steps} />
      <p class="actions">
        <Copy text={commands.curl} shown="Copy as curl" label="Request as curl" />
        <Copy text={commands.pay} shown="Copy as coinslot pay" label="Purchase as coinslot pay" />
        {canReplay && <Replay key={id} details={details} />}
      </p>
      {cycle.legs.map((leg) => (
        <LegView key={`${id}-${leg.number}`} leg={leg} />
      ))}
    </article>
  );
}

function Replay({ details }: { details: CycleDetails }) {
  const [report, setReport] = useState<ReplayReport | "running" | string>();
  useEffect(() => setReport(undefined), [details.cycle.id, details.cycle.startedAt]);
  const run = async () => {
    setReport("running");
    try {
      setReport(await replayCycle(details.cycle));
    } catch (error) {
      setReport(error instanceof ApiError ? error.message : "It failed.");
    }
  };
  return (
    <>
      <button type="button" disabled={report === "running"} onClick={run}>
        {report === "running" ? "Replaying…" : "Replay on the local chain"}
      </button>
      {report !== undefined && report !== "running" && (
        <span class="replayed" role="status">
          {typeof report === "string"
            ? report
            : report.lines.map(({ about, recorded, now, isSame }) => (
                <span key={about} class={isSame ? "good" : "bad"}>
                  {about}: {isSame ? `${now}, as recorded` : `recorded ${recorded}, now ${now}`}
                </span>
              ))}
        </span>
      )}
    </>
  );
}
