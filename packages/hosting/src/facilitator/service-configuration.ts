import { isEventSecret } from "@coinslot/express";
import {
  type FacilitatorOptions,
  floatFromEnvironment,
  type SettlementOptions,
} from "@coinslot/facilitator";
import { type Address, addressSchema, ConfigurationError } from "@coinslot/protocol";
import * as z from "zod";
import { type LogLevel, logLevels } from "../create-logger.ts";
import { type Environment, readSecret } from "../environment/read-secret.ts";
import { readSettingsFile } from "../read-settings-file.ts";
import type { Setting } from "../setting.ts";
import { type CallerKey, isCallerName, readCallerKeys } from "./caller-keys.ts";
import { readChannelSettings } from "./channel-settings.ts";
import { fileNetworkSchema, readNetworkOptions } from "./network-options.ts";
import { readOperatorSettings } from "./operator-settings.ts";
import { facilitatorSettings } from "./settings.ts";
import { readWebhookSettings } from "./webhook-settings.ts";

/** Sources of the configuration. */
export interface FacilitatorSources {
  /** The process's environment; it goes before the file. */
  env: Environment;
  /** A YAML or JSON file. Default: the one that `FACILITATOR_CONFIG` names, if any. */
  file?: string | undefined;
}

/** Configuration of the hosted facilitator. */
export interface FacilitatorServiceConfiguration {
  host: string;
  /** 0: any free one. */
  port: number;
  /** Number of proxies in front whose claim of the caller's address is trusted. */
  trustProxy: number;
  logLevel: LogLevel;
  /** Keys of the callers; `undefined`: no key is needed. */
  keys: readonly CallerKey[] | undefined;
  /** Allowed recipients of payments; `undefined`: any. */
  payTo: readonly Address[] | undefined;
  /** Limit of each caller, at each endpoint. */
  requestsPerMinute: number;
  /** Of a process: verifications and settlements under way. */
  maxPaidRequests: number;
  eventSecrets: readonly string[];
  unsafePrivateCallbacks: boolean;
  facilitator: Pick<
    FacilitatorOptions,
    "networks" | "webhooks" | "refunds" | "operators" | "hostedChannels"
  > &
    Pick<SettlementOptions, "payersWithCode"> & { ledger: string };
}

const addressWords = "must be an address, 0x and 40 hexadecimal digits with a right checksum";
const wholeNumber = (most: number, least = 0) => {
  const words = `must be a whole number from ${least} to ${most}`;
  return z.int(words).min(least, words).max(most, words);
};
const payToSchema = z.array(
  z
    .string("must be text: write an address in quotes")
    .pipe(z.custom<Address>(isAddress, addressWords)),
  "must be a list of addresses",
);
const keySchema = z.strictObject({
  name: z.string().refine(isCallerName, "must be letters, digits, dots and dashes"),
  hash: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, "must be sha256: and 64 digits, as new-key prints it")
    .transform((text) => text.slice("sha256:".length)),
  /** Recipients of its channels. */
  receivers: payToSchema.min(1, "is empty: leave it out to serve no channels").optional(),
});

const usualLedger = "sqlite:./coinslot.db";

/** Settings of the file and, but for keys and networks, of the environment. */
const settingsSchema = z.strictObject({
  networks: z.array(fileNetworkSchema).default([]),
  ledger: z.string("must be text").default(usualLedger),
  keys: z.array(keySchema).min(1, "is empty: leave it out to serve all callers").optional(),
  payTo: payToSchema.min(1, "is empty: leave it out to allow all recipients").optional(),
  requestsPerMinute: wholeNumber(10_000_000, 1).default(600),
  maxPaidRequests: wholeNumber(1_000_000, 1).default(1_000),
  payersWithCode: z.boolean("must be true or false").default(true),
  codeGasPerMinute: wholeNumber(999_999_999).default(4_000_000),
  channelGasPerHour: wholeNumber(999_999_999, 5_000_000).default(60_000_000),
  unsafePrivateCallbacks: z.boolean("must be true or false").default(false),
  host: z.string("must be text").min(1).default("127.0.0.1"),
  port: wholeNumber(65_535).default(4_022),
  trustProxy: wholeNumber(100).default(0),
  logLevel: z.enum(logLevels, `must be one of ${logLevels.join(", ")}`).default("info"),
});

/** Parsers for the values of variables that are not text. */
const forms: Readonly<Record<string, (text: string) => unknown>> = {
  requestsPerMinute: toNumber,
  maxPaidRequests: toNumber,
  port: toNumber,
  trustProxy: toNumber,
  payersWithCode: toBoolean,
  codeGasPerMinute: toNumber,
  channelGasPerHour: toNumber,
  unsafePrivateCallbacks: toBoolean,
  payTo: splitList,
};

/**
 * Reads the configuration of the hosted facilitator from environment and file, by
 * `facilitatorSettings`.
 *
 * @throws ConfigurationError with all problems, and how to mend them; none repeats a secret, or a
 *   URL that may hold one
 */
export function readFacilitatorServiceConfiguration({
  env,
  file,
}: FacilitatorSources): FacilitatorServiceConfiguration {
  const problems: string[] = [];
  const tell = (problem: string) => void problems.push(problem);
  const path = file ?? (env.FACILITATOR_CONFIG?.trim() || undefined);
  const fromFile = readSettingsFile(path, { keys: "networks and ledger", tell });
  const fromEnvironment = readVariables(env, tell);
  const given: Record<string, unknown> = { ...fromFile, ...fromEnvironment.values };
  const read = settingsSchema.safeParse(given);
  const { names } = fromEnvironment;
  for (const { path, message } of read.error?.issues ?? []) {
    const [setting = "", ...rest] = path;
    const name = names.get(String(setting)) ?? String(setting);
    const place = rest.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`));
    tell(setting === "" ? describeUnknown(message) : `${name}${place.join("")}: ${message}`);
  }
  const inFile = settingsSchema.shape.keys.safeParse(given.keys).data;
  const keys = readKeys(env, tell) ?? inFile?.map(({ name, hash }) => ({ name, hash }));
  const hostedChannels = readChannelSettings({
    env,
    inFile: (inFile ?? []).flatMap(({ name, receivers }) =>
      receivers ? [{ name, receivers }] : [],
    ),
    gasPerHour: read.data?.channelGasPerHour,
    keys,
    payTo: settingsSchema.shape.payTo.safeParse(given.payTo).data,
    tell,
  });
  const eventSecrets = readEventSecrets(env, tell);
  const webhooks = readWebhookSettings(env, tell);
  const secret = (name: string) => readSecret(env, name, tell);
  const refunds = floatFromEnvironment({ variables: env, secret, tell });
  const operators = readOperatorSettings(env, tell);
  // Checked also where other settings are wrong, so that one error has all problems.
  const ledger = settingsSchema.shape.ledger.safeParse(given.ledger).data ?? usualLedger;
  const described = settingsSchema.shape.networks.safeParse(given.networks).data ?? [];
  const networks = readNetworkOptions({ env, described, ledger, tell });
  if (problems.length > 0 || !read.success) {
    throw new ConfigurationError("The facilitator", [...new Set(problems)]);
  }
  const { payersWithCode, codeGasPerMinute, payTo, ...rest } = read.data;
  const { networks: _, ledger: __, channelGasPerHour: ___, ...others } = rest;
  const code = payersWithCode && { gasPerMinute: BigInt(codeGasPerMinute) };
  const facilitator = {
    networks,
    ledger,
    payersWithCode: code,
    ...(webhooks && { webhooks }),
    ...(refunds && { refunds }),
    ...(operators && { operators }),
    ...(hostedChannels && { hostedChannels }),
  };
  return { ...others, payTo, keys, eventSecrets, facilitator };
}

/** The variables that have a plain name in the file, by that name. */
function readVariables(env: Environment, tell: (problem: string) => void) {
  const values: Record<string, unknown> = {};
  const names = new Map<string, string>();
  const settings: readonly Setting[] = facilitatorSettings;
  for (const { name, inFile, isSecret = false } of settings) {
    if (inFile === undefined || inFile.startsWith("keys") || inFile.startsWith("networks"))
      continue;
    const text = isSecret ? readSecret(env, name, tell) : env[name]?.trim() || undefined;
    if (text === undefined) continue;
    values[inFile] = forms[inFile]?.(text) ?? text;
    names.set(inFile, name);
  }
  return { values, names };
}

function readKeys(env: Environment, tell: (problem: string) => void): CallerKey[] | undefined {
  const name = "FACILITATOR_KEYS";
  const text = readSecret(env, name, tell);
  if (text === undefined) return undefined;
  const isFile = Boolean(env[`${name}_FILE`]?.trim());
  return readCallerKeys(text, { isFile, tell: (problem) => tell(`${name}: ${problem}`) });
}

function readEventSecrets(env: Environment, tell: (problem: string) => void): string[] {
  const name = "FACILITATOR_EVENT_SECRET";
  const secrets = splitList(readSecret(env, name, tell) ?? "");
  if (!secrets.every(isEventSecret)) {
    tell(`${name}: must be whsec_ and 24 to 64 random bytes in base64`);
  }
  return secrets;
}

function describeUnknown(message: string): string {
  return `${message}. Secrets are for the environment; the README lists what a file may hold.`;
}

function toNumber(text: string): unknown {
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : text;
}

function toBoolean(text: string): unknown {
  return text === "true" ? true : text === "false" ? false : text;
}

function splitList(text: string): string[] {
  return text.split(",").flatMap((part) => part.trim() || []);
}

function isAddress(value: unknown): boolean {
  return addressSchema.safeParse(value).success;
}
