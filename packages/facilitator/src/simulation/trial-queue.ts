import type { Address, VerifyOptions } from "@coinslot/protocol";
import type { Claim } from "../schemes/scheme.ts";
import type { SimulationResult } from "../schemes/simulation-result.ts";
import { roomForTransfers, sizeOf } from "./deployless-call.ts";
import { append, createFifo, type Fifo, type Linked, removeFirst } from "./fifo.ts";
import { simulationKey } from "./simulation-key.ts";

/** The caller of a verification: the key of its limits, and whether it has left. */
export type TrialCaller = Pick<VerifyOptions, "limitKey" | "wait">;

/** A caller's transfer that waits for its trial. */
export interface WaitingTrial extends Linked<WaitingTrial> {
  readonly transfer: Claim;
  /** `undefined`: the engine's own plan. */
  readonly caller: TrialCaller | undefined;
  readonly resolve: (result: SimulationResult) => void;
  readonly reject: (error: unknown) => void;
  /** Another request of the caller with the same transfer. One trial answers both. */
  twin?: WaitingTrial | undefined;
}

/**
 * Transfers that wait for their trial. Plan and verifications take turns, among verifications the
 * callers, and of each caller the payers. A payer's transfers are FIFO.
 */
export interface TrialQueue {
  isEmpty(): boolean;
  /** Appends a transfer to its line, or joins the same one that waits there. */
  add(trial: WaitingTrial): void;
  /**
   * Removes the transfers whose turn it is, at most as many as fit into one RPC request. Those
   * whose callers have all left take no turn: they go to `drop`.
   */
  take(maxTransfers: number, drop: (trial: WaitingTrial) => void): WaitingTrial[];
  /** Length of a payer's line of verifications for one caller. */
  countWaiting(payer: Address, limitKey: string | undefined): number;
}

/** The transfers of one payer through one caller. */
interface PayerLine extends Linked<PayerLine> {
  readonly payer: Address;
  readonly trials: Fifo<WaitingTrial>;
  length: number;
  /** By `simulationKey`, from the second transfer on. */
  byKey: Map<string, WaitingTrial> | undefined;
}

/** The lines of one caller. */
interface CallerLines extends Linked<CallerLines> {
  readonly limitKey: string;
  readonly turns: Fifo<PayerLine>;
  readonly byPayer: Map<Address, PayerLine>;
}

/** Callers that take turns. */
interface Lane {
  readonly turns: Fifo<CallerLines>;
  readonly byLimitKey: Map<string, CallerLines>;
}

/**
 * Creates a queue with hierarchical round robin. A wallet costs nothing to make. So a caller with
 * thousands of wallets has one share, and delays another caller by a single turn. The plan has half
 * of each request: a paid payment waits behind no verification. A line costs no memory while it is
 * empty.
 */
export function createTrialQueue(): TrialQueue {
  const plan: Lane = { turns: createFifo(), byLimitKey: new Map() };
  const verifications: Lane = { turns: createFifo(), byLimitKey: new Map() };
  let isPlanNext = true;

  return {
    isEmpty: () => plan.turns.first === undefined && verifications.turns.first === undefined,

    add(trial) {
      const line = openLine(trial.caller === undefined ? plan : verifications, trial);
      const waiting = line.length > 0 ? findSame(line, trial.transfer) : undefined;
      if (waiting === undefined) {
        append(line.trials, trial);
        line.length += 1;
        line.byKey?.set(simulationKey(trial.transfer), trial);
        return;
      }
      trial.twin = waiting.twin;
      waiting.twin = trial;
    },

    take(maxTransfers, drop) {
      const taken: WaitingTrial[] = [];
      let bytes = 0;
      while (taken.length < maxTransfers) {
        let lane = isPlanNext ? plan : verifications;
        let trial = firstIn(lane, drop);
        if (trial === undefined) {
          lane = isPlanNext ? verifications : plan;
          trial = firstIn(lane, drop);
        }
        if (trial === undefined) break;
        bytes += sizeOf(trial.transfer);
        if (taken.length > 0 && bytes > roomForTransfers) break;
        taken.push(trial);
        removeAndRotate(lane);
        isPlanNext = lane !== plan;
      }
      return taken;
    },

    countWaiting: (payer, limitKey = "") =>
      verifications.byLimitKey.get(limitKey)?.byPayer.get(payer)?.length ?? 0,
  };
}

/** The line in which a trial stands. A new one has its first turn after all others. */
function openLine(lane: Lane, { transfer, caller }: WaitingTrial): PayerLine {
  const limitKey = caller?.limitKey ?? "";
  let lines = lane.byLimitKey.get(limitKey);
  if (lines === undefined) {
    lines = { limitKey, turns: createFifo(), byPayer: new Map() };
    lane.byLimitKey.set(limitKey, lines);
    append(lane.turns, lines);
  }
  const { payer } = transfer.id;
  let line = lines.byPayer.get(payer);
  if (line === undefined) {
    line = { payer, trials: createFifo(), length: 0, byKey: undefined };
    lines.byPayer.set(payer, line);
    append(lines.turns, line);
  }
  return line;
}

/** The same transfer, where it waits: one trial answers for both. */
function findSame(line: PayerLine, transfer: Claim): WaitingTrial | undefined {
  if (line.byKey === undefined) {
    line.byKey = new Map();
    for (let trial = line.trials.first; trial !== undefined; trial = trial.next) {
      line.byKey.set(simulationKey(trial.transfer), trial);
    }
  }
  return line.byKey.get(simulationKey(transfer));
}

/** The transfer whose turn is next. Drops those before it whose callers have left. */
function firstIn(lane: Lane, drop: (trial: WaitingTrial) => void): WaitingTrial | undefined {
  for (let lines = lane.turns.first; lines !== undefined; lines = lane.turns.first) {
    for (let line = lines.turns.first; line !== undefined; line = lines.turns.first) {
      for (let trial = line.trials.first; trial !== undefined; trial = line.trials.first) {
        if (isWanted(trial)) return trial;
        removeTrial(line);
        drop(trial);
      }
      removeFirst(lines.turns);
      lines.byPayer.delete(line.payer);
    }
    removeFirst(lane.turns);
    lane.byLimitKey.delete(lines.limitKey);
  }
  return undefined;
}

function isWanted(trial: WaitingTrial): boolean {
  for (let each: WaitingTrial | undefined = trial; each; each = each.twin) {
    if (!hasLeft(each)) return true;
  }
  return false;
}

/** A caller whose own function throws is still there: the trials of others are not to end by it. */
function hasLeft({ caller }: WaitingTrial): boolean {
  try {
    return caller?.wait?.isGone() === true;
  } catch {
    return false;
  }
}

/** Removes the first transfer of a lane, and gives the turn to the next caller and payer. */
function removeAndRotate(lane: Lane): void {
  const lines = removeFirst(lane.turns);
  const line = lines && removeFirst(lines.turns);
  if (lines === undefined || line === undefined) return;
  removeTrial(line);
  if (line.length > 0) append(lines.turns, line);
  else lines.byPayer.delete(line.payer);
  if (lines.turns.first !== undefined) append(lane.turns, lines);
  else lane.byLimitKey.delete(lines.limitKey);
}

function removeTrial(line: PayerLine): void {
  const trial = removeFirst(line.trials);
  line.length -= 1;
  if (trial !== undefined) line.byKey?.delete(simulationKey(trial.transfer));
}
