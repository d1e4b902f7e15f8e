import type { Request, Response } from "express";
import { ApiError } from "./api-error.ts";
import type { ApiStores } from "./api-stores.ts";
import type { KeyCheck, StoredKey } from "./keys/key-store.ts";
import { callerNetwork } from "./limits/caller-network.ts";
import { enforceLimit, tooMany } from "./limits/enforce-limit.ts";
import { type Limit, raisedLimit } from "./limits/limit.ts";
import type { Operation } from "./operations.ts";

/** An admitted caller. */
export interface Caller {
  /** The name that requests are counted by: the caller's key, or its network address. */
  name: string;
  key: StoredKey | undefined;
  /** Resolves to whether the caller would be admitted now: a long-running request asks again. */
  isStillWelcome(): Promise<boolean>;
}

/** Access control and rate limits. */
export interface Access {
  /**
   * Admits a request, or throws an `ApiError` of 401, 403 or 429. Writes the headers of the limit.
   */
  admit(request: Request, response: Response, named: NamedOperation): Promise<Caller>;
  /** For paths and methods that do not exist: only callers with a key learn that. */
  requireKey(request: Request): Promise<void>;
}

export interface NamedOperation {
  id: string;
  operation: Operation;
}

export interface AccessOptions {
  stores: () => Promise<ApiStores>;
  /**
   * `specified`: a missing, wrong or expired key is a 401, on every operation. `live`, as the API's
   * public deployment: a missing or wrong key is a 403, an expired one a 401. Health and chains are
   * open.
   */
  authStatus: "specified" | "live";
  /** Number of wrong keys that an address may present. */
  failureLimit: Limit;
}

/** Access by the key in the header `x-api-key`, counted by key and operation. */
export function createKeyAccess({ stores, authStatus, failureLimit }: AccessOptions): Access {
  /** A good key is never refused for the wrong ones of others behind its address. */
  async function refuse(request: Request, state: KeyFault): Promise<never> {
    const { counter } = await stores();
    const name = `failed keys ${callerNetwork(request.ip)}`;
    const { count, resetsInMs } = await counter.hit(name, failureLimit.windowMs);
    if (count > failureLimit.max) {
      throw tooMany(failureLimit, Math.max(1, Math.ceil(resetsInMs / 1_000)));
    }
    const status = authStatus === "live" && state !== "expired" ? 403 : 401;
    throw new ApiError(status, keyFaults[state]);
  }

  async function checkKey(request: Request): Promise<KeyCheck | { state: "missing" }> {
    const presented = request.get("x-api-key");
    if (presented === undefined || presented === "") return { state: "missing" };
    const { keys } = await stores();
    return keys.check(presented);
  }

  return {
    async admit(request, response, { id, operation }) {
      const check = await checkKey(request);
      const { counter } = await stores();
      if (check.state === "valid") {
        const { key } = check;
        const limit = raisedLimit(operation.limit, key.limit);
        await enforceLimit(response, { counter, operation: id, caller: key.hashedKey, limit });
        return {
          name: key.hashedKey,
          key,
          isStillWelcome: async () => (await checkKey(request)).state === "valid",
        };
      }
      if (authStatus === "specified" || operation.isOpenWhenLive !== true) {
        return refuse(request, check.state);
      }
      const caller = callerNetwork(request.ip);
      const { limit } = operation;
      await enforceLimit(response, { counter, operation: id, caller, limit });
      return { name: caller, key: undefined, isStillWelcome: async () => true };
    },

    async requireKey(request) {
      const check = await checkKey(request);
      if (check.state !== "valid") await refuse(request, check.state);
    },
  };
}

/** Admits every caller, without limits: for a router behind a layer that controls access itself. */
export const openAccess: Access = {
  admit: async (request) => ({
    name: callerNetwork(request.ip),
    key: undefined,
    isStillWelcome: async () => true,
  }),
  requireKey: async () => undefined,
};

type KeyFault = "missing" | "invalid" | "expired";

const keyFaults: Readonly<Record<KeyFault, string>> = {
  missing: "Send your API key in the header x-api-key.",
  invalid: "The API key in the header x-api-key is not valid.",
  expired: "The API key in the header x-api-key has expired.",
};
