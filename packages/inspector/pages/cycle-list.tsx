import { formatAge, formatTime } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import type { CycleSummary } from "../src/cycles/summarise.ts";

/** Rows that are drawn at once. */
const page = 200;

export function CycleList(props: {
  cycles: readonly CycleSummary[];
  chosen: number | undefined;
  onChoose(id: number): void;
}) {
  const { cycles, chosen, onChoose } = props;
  const [limit, setLimit] = useState(page);
  return (
    <>
      <ul class="cycles">
        {cycles.slice(0, limit).map((cycle) => (
          <li key={cycle.id}>
            <button
              type="button"
              aria-current={cycle.id === chosen ? "true" : undefined}
              onClick={() => onChoose(cycle.id)}
            >
              <Row cycle={cycle} />
            </button>
          </li>
        ))}
      </ul>
      {cycles.length > limit && (
        <button class="more" type="button" onClick={() => setLimit(limit + page)}>
          Show {Math.min(page, cycles.length - limit)} more
        </button>
      )}
    </>
  );
}

function Row({ cycle }: { cycle: CycleSummary }) {
  const { method, target, state, status, price, wire, tookMs, startedAt, failed } = cycle;
  return (
    <>
      <span class="line">
        <span class="target">
          <b>{method}</b> {target}
        </span>
        <StateMark state={state} status={status} />
      </span>
      <span class="line soft figures">
        <span>{failed === undefined ? (wire ?? "no payment") : `failed: ${failed.check}`}</span>
        <span title={formatTime(startedAt)}>
          {[
            price,
            tookMs === undefined ? undefined : `${tookMs} ms`,
            formatAge(startedAt, Date.now()),
          ]
            .filter((part) => part !== undefined)
            .join(" · ")}
        </span>
      </span>
    </>
  );
}

const tones = {
  offered: "plain",
  paying: "plain",
  paid: "good",
  "no receipt": "warn",
  refused: "bad",
  unclear: "warn",
  abandoned: "warn",
} as const satisfies Record<CycleSummary["state"], string>;

export function StateMark(props: { state: CycleSummary["state"]; status: number | undefined }) {
  const { state, status } = props;
  return (
    <span class={`mark ${tones[state]}`}>
      {state}
      {status === undefined ? "" : ` ${status}`}
    </span>
  );
}
