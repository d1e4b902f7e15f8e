import type { Step } from "../src/cycles/describe-steps.ts";

const lanes = ["buyer", "inspector", "seller", "chain"] as const;
type LaneName = (typeof lanes)[number];

/** The messages of a cycle between buyer, inspector, seller and chain, as a list that is drawn. */
export function Sequence({ steps }: { steps: readonly Step[] }) {
  return (
    <div class="sequence">
      <div class="lanes" aria-hidden="true">
        {lanes.map((lane) => (
          <span key={lane}>{lane}</span>
        ))}
      </div>
      <ol>
        {steps.map((step, index) => (
          <li key={index} class={`step ${step.kind} ${placeOf(step)}`}>
            <span class="aside">
              {step.from} to {step.to}:
            </span>
            <span class="arrow" aria-hidden="true" />
            <span class="label">
              <b>{step.label}</b>
              {step.note && <span> {step.note}</span>}
            </span>
            <span class="when figures">
              {step.tookMs === undefined ? `at ${step.atMs} ms` : `after ${step.tookMs} ms`}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The class that says from which lane to which a message goes. */
function placeOf({ from, to }: Pick<Step, "from" | "to">): string {
  const index = (lane: LaneName) => lanes.indexOf(lane);
  const isRight = index(to) > index(from);
  const isChain = from === "chain" || to === "chain";
  return `${isChain ? "to-chain" : "through"} ${isRight ? "right" : "left"}`;
}
