import type { HostedChannelOptions } from "@coinslot/facilitator";
import {
  type Address,
  addressSchema,
  isNetwork,
  isSameAddress,
  type Network,
} from "@coinslot/protocol";
import { type Environment, readSecret } from "../environment/read-secret.ts";
import type { CallerKey } from "./caller-keys.ts";

/** The receivers of a caller's channels. */
export interface CallerReceivers {
  name: string;
  receivers: readonly Address[];
}

type Tell = (problem: string) => void;

const receiversName = "FACILITATOR_CHANNEL_RECEIVERS";
const keyName = "FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY";
const networksName = "FACILITATOR_CHANNEL_NETWORKS";

/**
 * Reads the channels that are served to callers: the receivers of each, the key that signs for
 * them, and their gas. Undefined where no caller has a receiver: no channels are served then.
 *
 * @param options.inFile those of the file; the environment goes before it
 * @param options.payTo the allowed recipients of payments, which bound those of channels, too
 */
export function readChannelSettings(options: {
  env: Environment;
  inFile: readonly CallerReceivers[];
  gasPerHour: number | undefined;
  keys: readonly CallerKey[] | undefined;
  payTo: readonly Address[] | undefined;
  tell: Tell;
}): HostedChannelOptions | undefined {
  const { env, inFile, gasPerHour, keys = [], payTo, tell } = options;
  const privateKey = readSecret(env, keyName, tell);
  const networks = readNetworks(env, tell);
  const callers = readReceivers(env, tell) ?? inFile;
  if (callers.length === 0) {
    if (privateKey !== undefined || networks !== undefined) {
      tell(`${keyName} and ${networksName} are of channels: set ${receiversName}`);
    }
    return undefined;
  }
  for (const { name, receivers } of callers) {
    if (!keys.some((key) => key.name === name)) {
      tell(`${receiversName}: ${name} has no key in FACILITATOR_KEYS`);
    }
    const isAllowed = (receiver: Address) =>
      payTo === undefined || payTo.some((each) => isSameAddress(each, receiver));
    if (!receivers.every(isAllowed)) {
      tell(`${receiversName}: ${name} has a receiver that FACILITATOR_PAY_TO does not allow`);
    }
  }
  if (privateKey !== undefined && !/^(?:0x)?[0-9a-fA-F]{64}$/.test(privateKey)) {
    tell(`${keyName}: must be 32 bytes in hex: 64 digits, with or without 0x`);
  }
  return {
    callers,
    ...(gasPerHour !== undefined && { gasPerHour: BigInt(gasPerHour) }),
    ...(privateKey !== undefined && { authorizer: { privateKey } }),
    ...(networks !== undefined && { networks }),
  };
}

/** Entries `<caller>:<address>`, separated by commas; a caller may have several. */
function readReceivers(env: Environment, tell: Tell): CallerReceivers[] | undefined {
  const text = env[receiversName]?.trim();
  if (!text) return undefined;
  const callers = new Map<string, Address[]>();
  for (const [index, entry] of text.split(",").entries()) {
    const [, name, receiver] = /^([^:]+):(.+)$/.exec(entry.trim()) ?? [];
    const address = addressSchema.safeParse(receiver).data;
    if (name === undefined || address === undefined) {
      tell(`${receiversName}: entry ${index + 1} must be <caller>:<address>`);
      continue;
    }
    callers.set(name, [...(callers.get(name) ?? []), address]);
  }
  return [...callers].map(([name, receivers]) => ({ name, receivers }));
}

function readNetworks(env: Environment, tell: Tell): Network[] | undefined {
  const text = env[networksName]?.trim();
  if (!text) return undefined;
  const parts = text.split(",").map((part) => part.trim());
  const networks = parts.filter(isNetwork);
  if (networks.length < parts.length) {
    tell(`${networksName}: must be networks such as eip155:9745,eip155:988`);
  }
  return networks.length === 0 ? undefined : networks;
}
