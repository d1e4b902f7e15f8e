import { limitKeyOf } from "@coinslot/express";
import { createDatabaseHitCounter, hitsMigration, migrate, openDatabase } from "@coinslot/storage";
import { type Request, type RequestHandler, Router } from "express";
import { rateLimit, type Store } from "express-rate-limit";
import { type CallerKey, findCaller } from "./caller-keys.ts";

const windowMs = 60_000;
const hitsTable = "facilitator_hits";

/** What knows how often callers have asked. */
export interface CallerCounts {
  /** `undefined`: each process counts for itself, in its memory. */
  store: Store | undefined;
  /** @throws DatabaseError */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Counts requests in the database of the ledger where processes may share it, else in memory. Opens it at once;
 * `ready()` says what came of that.
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
  // Told by `ready`, and by whoever counts.
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
 * Lets through who may ask, as often as that is allowed. A caller is the owner of a key, or else an address; callers
 * with a wrong key are counted by their address. Endpoints are counted apart, so that who could verify a payment can
 * settle it. `/supported` is for everybody.
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
      // Whose word counts on the caller's address is a setting, and was checked.
      validate: { xForwardedForHeader: false, trustProxy: false },
      keyGenerator(request) {
        const caller = limitKeyOf(request, () => keys && callerOf(request, keys));
        return `${endpointOf(request)} ${caller}`;
      },
      handler(_request, response) {
        const message = "Too many requests: try again when the header Retry-After says";
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
      const message = "This facilitator asks for a key: send it as Authorization: Bearer <key>";
      response.status(401).json({ error: "unauthorized", message });
    });
  }
  return router;
}

/** The endpoint that is asked, for counting. */
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
