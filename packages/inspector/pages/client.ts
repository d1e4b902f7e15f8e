import type { Cycle } from "../src/cycles/cycle.ts";
import type { CycleDetails, InspectorFacts } from "../src/page/page-server.ts";
import type { ReplayReport } from "../src/replay/replay-cycle.ts";

/** An answer of the API that is none, in words. */
export class ApiError extends Error {}

async function ask<Result>(path: string, body?: string): Promise<Result> {
  const headers = { "content-type": "application/json", "x-coinslot-inspector": "1" };
  const init = body === undefined ? {} : { method: "POST", headers, body };
  const answer = await fetch(path, init).catch(() => {
    throw new ApiError("The inspector does not answer. Is it still running?");
  });
  const value = await answer.json().catch(() => ({}));
  if (answer.ok) return value;
  throw new ApiError(
    typeof value.error === "string" ? value.error : `It answered ${answer.status}`,
  );
}

export const readFacts = () => ask<InspectorFacts>("/api/facts");
export const readCycle = (id: number) => ask<CycleDetails>(`/api/cycles/${id}`);
export const openRecording = (text: string) => ask<{ cycles: CycleDetails[] }>("/api/open", text);

/** Replays a cycle on the seller's local chain. */
export function replayCycle(cycle: Cycle): Promise<ReplayReport> {
  const recording = { coinslotRecording: 1, recordedAt: new Date().toISOString(), cycles: [cycle] };
  return ask<ReplayReport>("/api/replay", JSON.stringify(recording));
}
