import type { ChannelOptions, ClaimAccount } from "./channel-options.ts";
import {
  type EnvironmentSource,
  readCount,
  readSecretVariable,
  readUnits,
  readVariable,
} from "./environment-source.ts";

const units = [
  ["CHANNELS_MOST_AT_RISK", "mostAtRisk"],
  ["CHANNELS_CLAIM_COST", "claimCost"],
] as const;

const counts = [
  ["CHANNELS_CLAIM_AFTER_SECONDS", "claimAfterSeconds"],
  ["CHANNELS_CLAIM_AT_CLOSE_SECONDS", "claimAtCloseSeconds"],
  ["CHANNELS_WITHDRAW_DELAY_SECONDS", "withdrawDelaySeconds"],
  ["CHANNELS_MAX_REFUNDS_PER_SIGNER", "maxRefundsPerSigner"],
  ["CHANNELS_MAX_REFUNDS_PER_HOUR", "maxRefundsPerHour"],
  ["CHANNELS_MAX_DEPOSITS_PER_SIGNER", "maxDepositsPerSigner"],
  ["CHANNELS_MAX_FAILED_DEPOSITS_PER_PAYER", "maxFailedDepositsPerPayer"],
  ["CHANNELS_MIN_DEPOSIT_WORTH", "minDepositWorth"],
] as const;

/**
 * Reads the payment channels of a seller from `CHANNELS_…`. `CHANNELS_ENABLED` turns them on. The
 * facilitator checks keys and ranges.
 *
 * @returns `undefined` where they are not turned on
 */
export function channelsFromEnvironment(source: EnvironmentSource): ChannelOptions | undefined {
  const isEnabled = readVariable(source, "CHANNELS_ENABLED") ?? "false";
  if (isEnabled !== "true" && isEnabled !== "false") {
    source.tell("CHANNELS_ENABLED: must be true or false");
  }
  const options: ChannelOptions = { ...readAuthorizers(source) };
  for (const [name, member] of units) {
    const value = readUnits(source, name);
    if (value !== undefined) options[member] = value;
  }
  for (const [name, member] of counts) {
    const value = readCount(source, name);
    if (value !== undefined) options[member] = value;
  }
  if (isEnabled === "true") return options;
  if (isEnabled === "false" && Object.keys(options).length > 0) {
    source.tell("CHANNELS_…: are settings of payment channels: set CHANNELS_ENABLED to true");
  }
  return undefined;
}

function readAuthorizers(
  source: EnvironmentSource,
): Pick<ChannelOptions, "authorizer" | "formerAuthorizers"> {
  const seedPhrase = readSecretVariable(source, "CHANNELS_AUTHORIZER_SEED_PHRASE");
  const privateKey = readSecretVariable(source, "CHANNELS_AUTHORIZER_PRIVATE_KEY");
  if (seedPhrase !== undefined && privateKey !== undefined) {
    source.tell(
      "CHANNELS_AUTHORIZER_SEED_PHRASE and CHANNELS_AUTHORIZER_PRIVATE_KEY: leave out one",
    );
  }
  const [authorizer]: ClaimAccount[] = [
    ...(seedPhrase === undefined ? [] : [{ seedPhrase }]),
    ...(privateKey === undefined ? [] : [{ privateKey }]),
  ];
  const former = (readSecretVariable(source, "CHANNELS_FORMER_AUTHORIZER_PRIVATE_KEYS") ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
  return {
    ...(authorizer && { authorizer }),
    ...(former.length > 0 && { formerAuthorizers: former.map((each) => ({ privateKey: each })) }),
  };
}
