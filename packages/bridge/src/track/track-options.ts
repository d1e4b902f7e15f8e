import type { Hash, Hex } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { TrackedProgress } from "../send/transfer-progress.ts";

/** The transfer to wait for, and the limits of the wait. */
export interface TrackOptions {
  /** Hash of the transaction on the source chain. */
  hash: Hash;
  /**
   * The signed transaction, as `sending` reported it. With it, the same transfer is sent again
   * while it is in no block, and can be recognised as `replaced`.
   */
  transaction?: Hex | undefined;
  /** The contract it was sent through, if the request named one. */
  oftContractAddress?: string | undefined;
  /**
   * Called with each change, in either direction: a reorganisation may take back an earlier report.
   */
  onProgress?: ((progress: TrackedProgress) => void | Promise<void>) | undefined;
  /**
   * Required depth on the target chain, 1 being its newest block. Default: the chain's depth of
   * finality.
   */
  confirmations?: number | undefined;
  /** Default 1 800 000. */
  timeoutMs?: number | undefined;
  /** Default 2000. */
  pollIntervalMs?: number | undefined;
  /** When aborted, tracking rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Checks the options of a wait.
 *
 * @param subject the name of the called function
 * @throws BridgeError `invalid_configuration`, which names all faults at once
 */
export function checkWait(
  subject: string,
  {
    confirmations,
    timeoutMs,
    pollIntervalMs,
  }: Pick<TrackOptions, "confirmations" | "timeoutMs" | "pollIntervalMs">,
): void {
  const problems: string[] = [];
  if (confirmations !== undefined && !(Number.isSafeInteger(confirmations) && confirmations > 0)) {
    problems.push("confirmations is not a positive integer");
  }
  for (const [name, ms] of Object.entries({ timeoutMs, pollIntervalMs })) {
    if (ms !== undefined && !(ms > 0)) problems.push(`${name} is not above zero`);
  }
  if (problems.length === 0) return;
  throw new BridgeError("invalid_configuration", `${subject}: ${problems.join("; ")}`);
}
