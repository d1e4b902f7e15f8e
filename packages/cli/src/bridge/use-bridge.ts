import { type Bridge, BridgeError, type BridgeErrorCode } from "@coinslot/bridge";
import { UnclearError, UsageError } from "../exit-code.ts";

/** Faults in the person's input, some of which only a chain can detect. */
const usageCodes: ReadonlySet<BridgeErrorCode> = new Set<BridgeErrorCode>([
  "invalid_configuration",
  "unknown_target_chain",
  "unknown_source_chain",
  "same_chain",
  "no_route",
  "invalid_token",
  "invalid_contract",
  "invalid_recipient",
  "not_a_transfer",
]);

/**
 * Runs a function with a bridge, closes the bridge, and converts its errors to those with an exit
 * code.
 */
export async function useBridge<T>(
  create: () => Bridge,
  work: (bridge: Bridge) => Promise<T>,
): Promise<T> {
  let bridge: Bridge | undefined;
  try {
    bridge = create();
    return await work(bridge);
  } catch (error) {
    throw toCliError(error);
  } finally {
    bridge?.close();
  }
}

/** An error of a bridge as one of the command. */
export function toCliError(cause: unknown): unknown {
  if (!(cause instanceof BridgeError)) return cause;
  if (cause.moneyMayHaveMoved) return new UnclearError(cause.message, { cause });
  return usageCodes.has(cause.code) ? new UsageError(cause.message, { cause }) : cause;
}
