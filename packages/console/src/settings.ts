import { ConfigurationError } from "@coinslot/protocol";

/** Settings of a console. */
export interface ConsoleOptions {
  /** Key of the operator: 32 to 256 characters of ASCII, drawn at random. */
  key?: string | undefined;
  /** Key of readers, of the same form. */
  readerKey?: string | undefined;
  /**
   * Origins of the console besides those of loopback, such as `https://shop.example`. `http://`
   * only for a name of this machine. Requests under other names are refused.
   */
  origins?: readonly string[] | undefined;
  /**
   * Lets programs of this machine read without a sign-in. Leave it off behind a proxy that adds no
   * forwarding header: every request seems to come from this machine there. Default false.
   */
  readOnLoopback?: boolean | undefined;
  /**
   * Refunds above this many tokens, alone or together since the last confirmation, need a new one.
   * It takes the key, or a code that is printed. Default "100".
   */
  confirmAbove?: string | undefined;
  /** Silence of a person after which a session ends. Default 15. */
  idleMinutes?: number | undefined;
  /** Life of a session. Default 12. */
  maxAgeHours?: number | undefined;
  /**
   * Prints one-time links and codes, for the operator alone. Default: standard error.
   */
  print?: ((line: string) => void) | undefined;
  /**
   * Receives what fails, besides the answer that says so. Default: its message to standard error.
   */
  onError?: ((error: unknown) => void) | undefined;
}

/** Settings, read. */
export interface ConsoleSettings {
  key: string | undefined;
  readerKey: string | undefined;
  origins: readonly string[];
  readOnLoopback: boolean;
  confirmAboveMicros: bigint;
  idleMs: number;
  maxAgeMs: number;
  print(line: string): void;
  onError(error: unknown): void;
}

const keyForm = /^[\x21-\x7e]{32,256}$/;
const amountForm = /^\d{1,15}(?:\.\d{1,6})?$/;
const localNames = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;

/** Reads the settings. @throws ConfigurationError with all problems */
export function readSettings(options: ConsoleOptions): ConsoleSettings {
  const { key, readerKey, origins = [], readOnLoopback = false, confirmAbove = "100" } = options;
  const { idleMinutes = 15, maxAgeHours = 12, print = toStandardError } = options;
  const { onError = (error) => toStandardError(messageOf(error)) } = options;
  const problems: string[] = [];
  for (const [name, value] of Object.entries({ key, readerKey })) {
    if (value !== undefined && !keyForm.test(value)) {
      problems.push(`${name} must have 32 to 256 characters of ASCII, without spaces`);
    }
  }
  if (key !== undefined && key === readerKey) {
    problems.push("key and readerKey are the same: readers would act");
  }
  for (const origin of origins) {
    if (!isOrigin(origin)) {
      problems.push(
        `origins: ${JSON.stringify(origin)} must be https://, or http:// for localhost, without a path`,
      );
    }
  }
  if (!amountForm.test(confirmAbove)) {
    problems.push('confirmAbove must be a number of tokens, such as "100" or "0.5"');
  }
  if (!(idleMinutes >= 1 && idleMinutes <= 24 * 60)) problems.push("idleMinutes must be 1 to 1440");
  if (!(maxAgeHours > 0 && maxAgeHours <= 24 * 7)) problems.push("maxAgeHours must be 168 at most");
  if (problems.length > 0) throw new ConfigurationError("The console", problems);
  return {
    ...{ key, readerKey, readOnLoopback, print, onError },
    origins: origins.map((origin) => new URL(origin).origin),
    confirmAboveMicros: toMicros(confirmAbove),
    idleMs: idleMinutes * 60_000,
    maxAgeMs: maxAgeHours * 3_600_000,
  };
}

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname, search, hash, username } = new URL(text);
  if (pathname !== "/" || search !== "" || hash !== "" || username !== "") return false;
  return protocol === "https:" || (protocol === "http:" && localNames.test(hostname));
}

function toMicros(amount: string): bigint {
  const [whole = "0", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(6, "0"));
}

function toStandardError(line: string): void {
  process.stderr.write(`${line}\n`);
}

function messageOf(error: unknown): string {
  return `The console: ${error instanceof Error ? error.message : String(error)}`;
}
