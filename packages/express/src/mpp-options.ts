import { isRecord } from "./is-record.ts";

/**
 * Secrets that make and prove the ids of challenges: the first makes, all prove. As a setting,
 * `"ledger"` stands for the secret of the facilitator's ledger.
 */
export type ChallengeSecrets = readonly [current: string, ...retired: string[]];

/**
 * Ways that are offered by MPP, too. `auto`: those whose token released buyers can sign for;
 * `true`: all; `false`: none.
 */
export type MppMode = "auto" | boolean;

/** Settings of MPP beside its mode. */
export interface MppOptions {
  /** Ways that are offered by MPP, too. Default `auto`. */
  mode?: MppMode | undefined;
  /**
   * Secrets that bind challenges to their terms, each of at least 32 bytes: the first makes
   * challenges, all prove them. A retired one stays for the longest `maxTimeoutSeconds` and an
   * hour. The default is a secret in the facilitator's ledger, which its processes share, and which
   * proves beside these. `["ledger", next]` lets `next` prove before it makes challenges. Without a
   * ledger the default is one of this process alone, and another process refuses its challenges.
   */
  secrets?: ChallengeSecrets | undefined;
  /** Name of the protection space in challenges. Default: the host of the request. */
  realm?: string | undefined;
  /**
   * Header in which credentials are asked for. `Payment-Authorization` leaves `Authorization` to
   * the application. Credentials in either are taken. Default `Authorization`.
   */
  header?: "Authorization" | "Payment-Authorization" | undefined;
}

/** The parsed settings of MPP. */
export interface MppSettings {
  mode: MppMode;
  /** `undefined`: the ledger's. */
  secrets: ChallengeSecrets | undefined;
  /** `undefined`: the host of each request. */
  realm: string | undefined;
  /** `undefined`: `Authorization`. */
  header: "Payment-Authorization" | undefined;
}

const members = new Set(["mode", "secrets", "realm", "header"]);
const maxRealm = 255;
const minSecretBytes = 32;
/** The place of the ledger's secret among those of a setting: too short to be one. */
export const ledgerSecret = "ledger";

/** Returns whether a value is a mode, for sellers in plain JavaScript. */
export function isMppMode(value: unknown): value is MppMode {
  return value === "auto" || typeof value === "boolean";
}

/** Reads the setting of a middleware: a mode, or an object. Reports every problem. */
export function readMppSettings(
  value: unknown,
  {
    environmentSecrets,
    tell,
  }: { environmentSecrets: string | undefined; tell: (problem: string) => void },
): MppSettings {
  const options: Record<string, unknown> = isRecord(value) ? value : { mode: value };
  for (const name of Object.keys(options)) {
    if (!members.has(name)) tell(`options.mpp.${name} is unknown`);
  }
  const { mode = "auto", realm, header = "Authorization" } = options;
  if (!isMppMode(mode)) tell('options.mpp must be "auto", true, false, or an object of settings');
  if (header !== "Authorization" && header !== "Payment-Authorization") {
    tell('options.mpp.header must be "Authorization" or "Payment-Authorization"');
  }
  const isRealm = typeof realm === "string" && /^[\x21-\x7e]+$/.test(realm);
  if (realm !== undefined && !(isRealm && realm.length <= maxRealm)) {
    tell(`options.mpp.realm must be printable ASCII, of at most ${maxRealm} characters`);
  }
  return {
    mode: isMppMode(mode) ? mode : "auto",
    secrets:
      readSecrets(options.secrets, { name: "options.mpp.secrets", tell }) ??
      readSecrets(environmentSecrets?.split(","), { name: "COINSLOT_MPP_SECRETS", tell }),
    realm: isRealm ? realm : undefined,
    header: header === "Payment-Authorization" ? header : undefined,
  };
}

/**
 * Reads secrets, and reports each problem without the secret.
 *
 * @returns `undefined` where there is a problem, or none is set
 */
function readSecrets(
  value: unknown,
  { name, tell }: { name: string; tell: (problem: string) => void },
): ChallengeSecrets | undefined {
  if (value === undefined) return undefined;
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const [current, ...retired] = entries.filter((entry) => isSecret(entry));
  if (current !== undefined && retired.length + 1 === entries.length) return [current, ...retired];
  tell(
    `${name} must be a list of secrets, each of at least ${minSecretBytes} bytes, or "${ledgerSecret}"`,
  );
  return undefined;
}

function isSecret(value: unknown): value is string {
  if (value === ledgerSecret) return true;
  return typeof value === "string" && Buffer.byteLength(value, "utf8") >= minSecretBytes;
}
