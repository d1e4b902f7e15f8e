import { type HitCounter, hitsMigration, createDatabaseHitCounter } from "@coinslot/indexer";
import { type Database, migrate, openDatabase } from "@coinslot/storage";
import { Router, type Request, type RequestHandler } from "express";
import { ipKeyGenerator, rateLimit, type Store } from "express-rate-limit";
import { type CallerKey, findCaller } from "./caller-keys.ts";

const windowMs = 60_000;
const hitsTable = "facilitator_hits";

/** What knows how often callers have asked. */
export interface CallerCounts {
  /** `undefined`: each process counts for itself, in its memory. */
  store: Store | undefined;
  close(): Promise<void>;
}

/**
 * Where requests are counted: in the database of the ledger where processes may share it, else in memory.
 *
 * @throws DatabaseError
 */
export async function openCallerCounts(options: {
  ledger: string;
  onBackgroundError: (error: unknown) => void;
  now?: () => number;
}): Promise<CallerCounts> {
  const { ledger, onBackgroundError, now = Date.now } = options;
  if (ledger.startsWith("sqlite:")) return { store: undefined, close: async () => undefined };
  const database: Database<Record<string, never>> = await openDatabase({
    url: ledger,
    poolSize: 4,
    applicationName: "coinslot-limits",
    onBackgroundError,
  });
  await migrate(database, { name: "facilitator-limits", migrations: [hitsMigration(hitsTable)] });
  const counter = createDatabaseHitCounter({ database, table: hitsTable, onBackgroundError, now });
  return { store: createStore(counter, now), close: () => database.close() };
}

/** What counts of requests the limiter asks for, in the words of the database. Nothing is ever taken back. */
function createStore(counter: HitCounter, now: () => number): Store {
  return {
    async increment(name) {
      const { count, resetsInMs } = await counter.hit(name, windowMs);
      return { totalHits: count, resetTime: new Date(now() + resetsInMs) };
    },
    decrement: () => undefined,
    resetKey: () => undefined,
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
        const name = keys && callerOf(request, keys);
        const caller = name === undefined ? `ip ${networkOf(request)}` : `key ${name}`;
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

function callerOf(request: Request, keys: readonly CallerKey[]): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(request.get("Authorization") ?? "")?.[1];
  const presented = bearer ?? request.get("X-API-Key");
  return presented === undefined ? undefined : findCaller(keys, presented);
}

/** An IPv4 address, or the part of an IPv6 one that a subscriber has. */
function networkOf({ ip }: Request): string {
  return ip === undefined ? "unknown" : ipKeyGenerator(ip);
}
