import { randomBytes } from "node:crypto";

/**
 * Begins the ids of processes that listen to channels of their own. Those of older releases listen
 * to the channels of all alone.
 */
const release = "2-";

/** A new name for this process among those that share the ledger. */
export function createProcessId(): string {
  return release + randomBytes(12).toString("hex");
}

/** The channel on which one process alone listens, or `undefined` for one of an older release. */
export function channelOf(channel: string, processId: string): string | undefined {
  return processId.startsWith(release) ? `${channel}_${processId}` : undefined;
}
