import type { WebhookOptions } from "@coinslot/facilitator";
import { type Environment, readSecret } from "../environment/read-secret.ts";

/**
 * Reads the receivers of webhooks. `none` ends those of the ledger; without the variable they stay
 * as they are. The facilitator checks URLs and secrets.
 */
export function readWebhookSettings(
  env: Environment,
  tell: (problem: string) => void,
): WebhookOptions[] | undefined {
  const urls = listOf(readSecret(env, "COINSLOT_WEBHOOK_URL", tell));
  const secrets = listOf(readSecret(env, "COINSLOT_WEBHOOK_SECRET", tell));
  const name = "COINSLOT_UNSAFE_PRIVATE_WEBHOOKS";
  const isPrivate = env[name]?.trim() || "false";
  if (!["true", "false"].includes(isPrivate)) tell(`${name}: must be true or false`);
  if (urls.length === 0) return undefined;
  if (urls.length === 1 && urls[0] === "none") return [];
  if (secrets.length === 0)
    tell("COINSLOT_WEBHOOK_SECRET: is not set, and COINSLOT_WEBHOOK_URL is");
  const unsafeAllowPrivateAddresses = isPrivate === "true";
  return urls.map((url) => ({ url, secrets, unsafeAllowPrivateAddresses }));
}

function listOf(text = ""): string[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
}
