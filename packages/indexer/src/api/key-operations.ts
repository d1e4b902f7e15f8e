import { ApiError, badRequest } from "./api-error.ts";
import type { KeyStore, StoredKey } from "./keys/key-store.ts";
import type { KeyCreated, KeyInfo, KeyRequest } from "./wire/key.ts";

const maxKeysOfOwner = 100;

/** The keys of the caller's owner. */
export async function listApiKeys(keys: KeyStore, caller: StoredKey): Promise<{ keys: KeyInfo[] }> {
  const found = await keys.list(caller.owner);
  return {
    keys: found.map((key) => ({
      ...toInfo(key),
      ...(key.limit && { max: key.limit.max, timeWindow: key.limit.windowMs }),
    })),
  };
}

/**
 * Makes another key for the caller's owner. It has the usual limits, and ends with the caller's key
 * at the latest. So a key that was given for a while cannot make itself one for ever.
 */
export async function createApiKey(
  keys: KeyStore,
  { caller, wish, now }: { caller: StoredKey; wish: KeyRequest; now: number },
): Promise<KeyCreated> {
  const { owner } = caller;
  const ttlMs = boundLifetime(wish.ttl ?? 0, caller, now);
  const made = await keys.createWithin(maxKeysOfOwner, { owner, label: wish.label, ttlMs });
  if (made === undefined) {
    throw badRequest(`keys: ${maxKeysOfOwner} are there already; revoke one first`);
  }
  return { key: made.key, ...toInfo(made.stored) };
}

/**
 * @throws ApiError 404 for a key that does not exist, or is another owner's; the answer is the same
 */
export async function deleteApiKey(
  keys: KeyStore,
  { caller, hashedKey }: { caller: StoredKey; hashedKey: string },
): Promise<{ success: boolean }> {
  if (await keys.revoke(hashedKey, caller.owner)) return { success: true };
  throw new ApiError(404, "You have no such key.");
}

function boundLifetime(ttlMs: number, { createdAtMs, ttlMs: own }: StoredKey, now: number): number {
  if (own === 0) return ttlMs;
  const left = Math.max(1, createdAtMs + own - now);
  return ttlMs === 0 ? left : Math.min(ttlMs, left);
}

function toInfo({ hashedKey, owner, ttlMs, label, createdAtMs, lastActiveAtMs }: StoredKey) {
  return {
    hashedKey,
    owner,
    ttl: ttlMs,
    ...(label !== undefined && { label }),
    createdAt: createdAtMs,
    lastActive: lastActiveAtMs,
  };
}
