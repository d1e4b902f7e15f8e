import type { Hash, Hex } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { TrackedProgress } from "../send/transfer-progress.ts";

/** Which transfer to wait for, and how long. */
export interface TrackOptions {
  /** Of the transaction on the source chain. */
  hash: Hash;
  /**
   * The signed transaction, as `sending` told it. With it, the transfer is sent again as it is while it is in no block,
   * and found out to be `replaced`.
   */
  transaction?: Hex | undefined;
  /** The contract it was sent through, if the request named one. */
  oftContractAddress?: string | undefined;
  /** Is told each change, in either direction: a reorganisation may take back what was told before. */
  onProgress?: ((progress: TrackedProgress) => void | Promise<void>) | undefined;
  /** How deep on the target chain, 1 being its newest block. Default: as deep as the chain needs to be final. */
  confirmations?: number | undefined;
  /** Default 1 800 000. */
  timeoutMs?: number | undefined;
  /** Default 2000. */
  pollIntervalMs?: number | undefined;
  /** When aborted, tracking rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Checks how it is to be waited.
 *
 * @param subject the function that was called
 * @throws BridgeError `invalid_configuration`, which names everything that is wrong at once
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
    problems.push("confirmations is no positive integer");
  }
  for (const [name, ms] of Object.entries({ timeoutMs, pollIntervalMs })) {
    if (ms !== undefined && !(ms > 0)) problems.push(`${name} is not above zero`);
  }
  if (problems.length === 0) return;
  throw new BridgeError("invalid_configuration", `${subject}: ${problems.join("; ")}`);
}
