import { type Environment, readSecret } from "../environment/read-secret.ts";

/** Id of the receiver of the environment. */
const receiverOfEnvironment = "default";

/**
 * Reads the receiver of webhooks about watched addresses. `none` ends those of the database;
 * without the variable the file decides. The indexer checks URL and secrets.
 */
export function readIndexerWebhooks(
  env: Environment,
  tell: (problem: string) => void,
): Record<string, unknown>[] | undefined {
  const url = readSecret(env, "INDEXER_WEBHOOK_URL", tell);
  const secrets = (readSecret(env, "INDEXER_WEBHOOK_SECRET", tell) ?? "")
    .split(",")
    .flatMap((each) => each.trim() || []);
  const name = "INDEXER_UNSAFE_PRIVATE_WEBHOOKS";
  const isPrivate = env[name]?.trim() || "false";
  if (!["true", "false"].includes(isPrivate)) tell(`${name}: must be true or false`);
  if (url === undefined) return undefined;
  if (url === "none") return [];
  if (secrets.length === 0) tell("INDEXER_WEBHOOK_SECRET: is not set, and INDEXER_WEBHOOK_URL is");
  const unsafeAllowPrivateAddresses = isPrivate === "true";
  const owner = env.INDEXER_WEBHOOK_OWNER?.trim() || undefined;
  return [
    {
      id: receiverOfEnvironment,
      url,
      secrets,
      unsafeAllowPrivateAddresses,
      ...(owner !== undefined && { owner }),
    },
  ];
}
