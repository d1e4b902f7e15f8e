import { limitKeyOf } from "@coinslot/express";
import { createDatabaseHitCounter, hitsMigration, migrate, openDatabase } from "@coinslot/storage";
import { type Request, type RequestHandler, Router } from "express";
import { rateLimit, type Store } from "express-rate-limit";
import { type CallerKey, findCaller } from "./caller-keys.ts";

const windowMs = 60_000;
const hitsTable = "facilitator_hits";

/** Counts of the callers' requests. */
export interface CallerCounts {
  /** `undefined`: each process counts for itself, in its memory. */
  store: Store | undefined;
  /** @throws DatabaseError */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Counts requests in the ledger's database where processes may share it, else in memory. It opens
 * at once; `ready()` resolves or rejects with the outcome.
 */
export function createCallerCounts(options: {
  ledger: string;
  onBackgroundError: (error: unknown) => void;
  now?: () => number;
}): CallerCounts {
  const { ledger, onBackgroundError, now = Date.now } = options;
  const nothing = async () => undefined;
  if (ledger.startsWith("sqlite:")) return { store: undefined, ready: nothing, close: nothing };
  const opening = open();
  // `ready` rejects with it, and so does each count.
  opening.catch(() => undefined);

  async function open() {
    const database = await openDatabase<Record<string, never>>({
      url: ledger,
      poolSize: 4,
      applicationName: "coinslot-limits",
      onBackgroundError,
    });
    try {
      await migrate(database, {
        name: "facilitator-limits",
        migrations: [hitsMigration(hitsTable)],
      });
    } catch (error) {
      await database.close();
      throw error;
    }
    const counter = createDatabaseHitCounter({
      database,
      table: hitsTable,
      onBackgroundError,
      now,
    });
    return { counter, close: () => database.close() };
  }

  return {
    store: {
      async increment(name) {
        const { counter } = await opening;
        const { count, resetsInMs } = await counter.hit(name, windowMs);
        return { totalHits: count, resetTime: new Date(now() + resetsInMs) };
      },
      // Nothing is ever taken back.
      decrement: nothing,
      resetKey: nothing,
    },
    async ready() {
      await opening;
    },
    async close() {
      const opened = await opening.catch(() => undefined);
      await opened?.close();
    },
  };
}

/**
 * Authorizes callers by key, and limits their requests. A caller is the owner of a key, else an
 * address; a wrong key counts against its address. Each endpoint has a limit of its own, so that a
 * payment that was verified can be settled. `/supported` needs no key.
 */
export function guardCallers(options: {
  keys: readonly CallerKey[] | undefined;
  requestsPerMinute: number;
  store: Store | undefined;
}): RequestHandler {
  const { keys, requestsPerMinute, store } = options;
  const router = Router();
  router.use(
    rateLimit({
      windowMs,
      limit: requestsPerMinute,
      standardHeaders: "draft-8",
      legacyHeaders: false,
      ...(store && { store }),
      // The setting of trusted proxies was checked at the start.
      validate: { xForwardedForHeader: false, trustProxy: false },
      keyGenerator(request) {
        const caller = limitKeyOf(request, () => keys && callerOf(request, keys));
        return `${endpointOf(request)} ${caller}`;
      },
      handler(_request, response) {
        const message = "Too many requests: retry after the time in the header Retry-After";
        response.status(429).json({ error: "too_many_requests", message });
      },
    }),
  );
  if (keys !== undefined) {
    router.use((request, response, next) => {
      if (endpointOf(request) === "supported" || callerOf(request, keys) !== undefined) {
        return next();
      }
      response.setHeader("WWW-Authenticate", 'Bearer realm="facilitator"');
      const message = "This facilitator requires a key: send it as Authorization: Bearer <key>";
      response.status(401).json({ error: "unauthorized", message });
    });
  }
  return router;
}

/** The endpoint of a request, for counting. */
export function endpointOf({ path }: Request): "verify" | "settle" | "supported" | "other" {
  // As Express routes: without regard to letter case, with or without a slash at the end.
  const name = path.toLowerCase().replace(/^\/|\/$/g, "");
  return name === "verify" || name === "settle" || name === "supported" ? name : "other";
}

/** The owner of the key that a request presents. */
export function callerOf(request: Request, keys: readonly CallerKey[]): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(request.get("Authorization") ?? "")?.[1];
  const presented = bearer ?? request.get("X-API-Key");
  return presented === undefined ? undefined : findCaller(keys, presented);
}
