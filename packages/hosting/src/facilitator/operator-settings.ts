import type { OperatorOptions } from "@coinslot/facilitator";
import { type Environment, readSecret } from "../environment/read-secret.ts";

/**
 * Reads the listener of the operator's commands over HTTP. Undefined without a port: a SQLite
 * ledger still has its socket. The facilitator checks the keys.
 */
export function readOperatorSettings(
  env: Environment,
  tell: (problem: string) => void,
): OperatorOptions | undefined {
  const key = (readSecret(env, "FACILITATOR_OPERATOR_KEY", tell) ?? "")
    .split(",")
    .flatMap((each) => each.trim() || []);
  const host = env.FACILITATOR_OPERATOR_HOST?.trim() || undefined;
  const text = env.FACILITATOR_OPERATOR_PORT?.trim() || undefined;
  if (text === undefined) {
    if (key.length > 0) {
      tell("FACILITATOR_OPERATOR_PORT: is not set, and FACILITATOR_OPERATOR_KEY is");
    }
    return undefined;
  }
  if (!/^[0-9]{1,5}$/.test(text) || Number(text) > 65_535) {
    tell("FACILITATOR_OPERATOR_PORT: must be a whole number from 0 to 65535");
    return undefined;
  }
  if (key.length === 0) {
    tell("FACILITATOR_OPERATOR_KEY: is not set, and FACILITATOR_OPERATOR_PORT is");
    return undefined;
  }
  return { port: Number(text), host, key };
}
