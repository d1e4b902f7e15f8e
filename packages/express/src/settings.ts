import type { Environment } from "./facilitator/facilitator-from-environment.ts";
import { defaultLimits } from "./load/load.ts";
import { type MppSettings, readMppSettings } from "./mpp-options.ts";
import { readPublicUrl } from "./offer/public-url.ts";
import type { PaymentMiddlewareOptions } from "./payment-middleware-options.ts";
import { defaultMaxUnverifiedBytes } from "./replay/body-pool.ts";
import { writeError } from "./response/write-error.ts";
import { isApplication } from "./routes/application-router.ts";

type Hook = "grantAccess" | "refusePayer" | "unpaidAnswer" | "clientKey";
type Optional = Hook | "publicUrl" | "paywall";
type Parsed = "mpp";

/** The parsed options of the middleware, with every default in its place. */
export type Settings = Pick<PaymentMiddlewareOptions, Optional> & {
  [name in Exclude<
    keyof PaymentMiddlewareOptions,
    Optional | Parsed | "app" | "reservations"
  >]-?: NonNullable<PaymentMiddlewareOptions[name]>;
} & { mpp: MppSettings };

const functions = [
  "grantAccess",
  "refusePayer",
  "unpaidAnswer",
  "clientKey",
  "onError",
  "now",
] as const;
const byteLimits = [
  "maxHeldBytes",
  "maxRequestBytes",
  "maxUnverifiedBytes",
  "maxResponseBytes",
  "maxKeptAnswerBytes",
] as const;
const names = new Set<string>([
  ...functions,
  ...byteLimits,
  "maxPaidRequests",
  "app",
  "legacyNetworkNames",
  "mpp",
  "paywall",
  "publicUrl",
  "reservations",
]);

/**
 * Reads the options, and reports every problem: a misspelt hook would be a gate that stands open.
 *
 * @param environment source of settings that the options leave out; empty for a middleware that
 * does not use the environment
 */
export function readSettings(
  options: PaymentMiddlewareOptions,
  { environment, tell }: { environment: Environment; tell: (problem: string) => void },
): Settings {
  for (const name of Object.keys(options)) {
    if (!names.has(name)) tell(`options.${name} is unknown`);
  }
  for (const name of functions) {
    const value: unknown = options[name];
    if (value !== undefined && typeof value !== "function") {
      tell(`options.${name} must be a function`);
    }
  }
  if (options.app !== undefined && !isApplication(options.app)) {
    tell("options.app must be an Express application (NestJS: app.getHttpAdapter().getInstance())");
  }
  const { paywall } = options;
  if (paywall !== undefined && typeof paywall?.writePage !== "function") {
    tell("options.paywall must have writePage, as paywall() of @coinslot/paywall does");
  }
  for (const name of byteLimits) {
    const value = options[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0)) {
      tell(`options.${name} must be a whole number of bytes`);
    }
  }
  if (!isCount(options.maxPaidRequests ?? 1)) {
    tell("options.maxPaidRequests must be a positive whole number");
  }
  const { grantAccess, refusePayer, unpaidAnswer, clientKey } = options;
  const { maxRequestBytes = 2 ** 20, maxUnverifiedBytes = defaultMaxUnverifiedBytes } = options;
  const { maxResponseBytes = 4 * 2 ** 20 } = options;
  // The largest request and its answer always find room in a process at rest.
  const largest = maxRequestBytes + maxResponseBytes;
  const { maxHeldBytes = Math.max(defaultLimits.maxHeldBytes, largest) } = options;
  if (maxHeldBytes < largest) {
    tell(
      "options.maxHeldBytes must be at least options.maxRequestBytes and options.maxResponseBytes together",
    );
  }
  if (maxUnverifiedBytes < maxRequestBytes) {
    tell("options.maxUnverifiedBytes must be at least options.maxRequestBytes");
  }
  return {
    publicUrl: findPublicUrl(options, environment, tell),
    legacyNetworkNames: options.legacyNetworkNames ?? false,
    mpp: readMppSettings(options.mpp, {
      environmentSecrets: environment.COINSLOT_MPP_SECRETS || undefined,
      tell,
    }),
    maxRequestBytes,
    maxUnverifiedBytes,
    maxResponseBytes,
    maxPaidRequests: options.maxPaidRequests ?? defaultLimits.maxPaidRequests,
    maxHeldBytes,
    maxKeptAnswerBytes: options.maxKeptAnswerBytes ?? 256 * 2 ** 10,
    now: options.now ?? Date.now,
    onError: harmless(options.onError ?? writeError),
    grantAccess,
    refusePayer,
    unpaidAnswer,
    clientKey,
    paywall,
  };
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function findPublicUrl(
  options: PaymentMiddlewareOptions,
  { COINSLOT_PUBLIC_URL }: Environment,
  tell: (problem: string) => void,
): string | undefined {
  if (options.publicUrl !== undefined || !COINSLOT_PUBLIC_URL) {
    return readPublicUrl(options.publicUrl, { name: "options.publicUrl", tell });
  }
  return readPublicUrl(COINSLOT_PUBLIC_URL, { name: "COINSLOT_PUBLIC_URL", tell });
}

/** A fault of `onError` must not add to the first: a caller waits for an answer. */
function harmless(tell: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    try {
      tell(error);
    } catch (fault) {
      writeError(fault);
    }
  };
}
