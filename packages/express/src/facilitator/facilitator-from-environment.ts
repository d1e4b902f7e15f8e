import { ConfigurationError, isNetwork, type ReservingFacilitator } from "@coinslot/protocol";

/** A facilitator that is loaded on the first wait for it. */
export interface FacilitatorSource {
  load(): Promise<ReservingFacilitator>;
  /** Closes the loaded facilitator. */
  close(): Promise<void>;
}

/** Variables of a facilitator's settings, as `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Makes a facilitator from the environment, with `@coinslot/facilitator`, which the application has
 * installed beside this package:
 *
 * | Variable | Meaning |
 * |---|---|
 * | `COINSLOT_NETWORK` | CAIP-2, such as `eip155:9745` |
 * | `COINSLOT_RPC_URL` | HTTP JSON-RPC endpoints, separated by commas, the preferred one first |
 * | `FACILITATOR_SEED_PHRASE` or `FACILITATOR_PRIVATE_KEY` | the account that pays gas |
 * | `COINSLOT_LEDGER` | the record of payments; default `sqlite:./coinslot.db` |
 * | `COINSLOT_WEBHOOK_URL` | receivers of events, separated by commas; `none` ends those of the ledger |
 * | `COINSLOT_WEBHOOK_SECRET` | signs the events: `whsec_…`, several during a rotation |
 * | `COINSLOT_UNSAFE_PRIVATE_WEBHOOKS` | `true`, for development: private addresses, and plain http |
 * | `FACILITATOR_FLOAT_SEED_PHRASE`, `FACILITATOR_FLOAT_PRIVATE_KEY` or `FACILITATOR_FLOAT_ADDRESS` | the account that pays refunds |
 * | `FACILITATOR_FLOAT_MAX_PER_DAY`, `FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY` | its limits, in the token's smallest unit |
 * | `CHANNELS_ENABLED` | `true` sells by payment channels; `CHANNELS_…` are their settings |
 *
 * The middleware itself reads `COINSLOT_PUBLIC_URL` beside these: `publicUrl` of its options.
 *
 * Missing variables are reported at once. The facilitator checks the values, when it is loaded, and
 * reads those of the float and of channels.
 */
export function facilitatorFromEnvironment(
  environment: Environment,
  tell: (problem: string) => void,
): FacilitatorSource {
  const { COINSLOT_NETWORK: network = "", COINSLOT_RPC_URL: rpcUrls = "" } = environment;
  const { FACILITATOR_SEED_PHRASE: seedPhrase, FACILITATOR_PRIVATE_KEY: privateKey } = environment;
  const relayer = seedPhrase || privateKey;
  const ledger = environment.COINSLOT_LEDGER || "sqlite:./coinslot.db";
  if (!isNetwork(network)) {
    tell("no facilitator was passed: set COINSLOT_NETWORK to a network such as eip155:9745");
  }
  if (rpcUrls === "")
    tell("no facilitator was passed: set COINSLOT_RPC_URL to the chain's endpoint");
  if (!relayer) {
    tell(
      "no facilitator was passed: set FACILITATOR_SEED_PHRASE or FACILITATOR_PRIVATE_KEY to the account that pays gas",
    );
  }
  let loaded: Promise<LoadedFacilitator> | undefined;

  async function create(): Promise<LoadedFacilitator> {
    const { createFacilitator, channelsFromEnvironment, floatFromEnvironment } =
      await importFacilitator();
    if (!isNetwork(network)) throw new ConfigurationError("The facilitator", ["no network is set"]);
    const problems: string[] = [];
    const source = {
      variables: environment,
      tell: (problem: string) => void problems.push(problem),
    };
    const refunds = floatFromEnvironment(source);
    const channels = channelsFromEnvironment(source);
    if (problems.length > 0) throw new ConfigurationError("The facilitator", problems);
    return createFacilitator({
      networks: [{ network, rpcUrls: rpcUrls.split(",").map((url) => url.trim()), relayer }],
      ledger,
      webhooks: webhooksOf(environment),
      refunds,
      channels,
    });
  }

  return {
    load() {
      loaded ??= create();
      return loaded;
    },
    async close() {
      const facilitator = await loaded;
      await facilitator?.close();
    },
  };
}

/** Receivers of webhooks; `undefined` leaves those of the ledger as they are. */
function webhooksOf({
  COINSLOT_WEBHOOK_URL: urls,
  COINSLOT_WEBHOOK_SECRET: secrets,
  COINSLOT_UNSAFE_PRIVATE_WEBHOOKS: isPrivate,
}: Environment) {
  const named = listOf(urls);
  if (named.length === 0) return undefined;
  if (named.length === 1 && named[0] === "none") return [];
  const unsafeAllowPrivateAddresses = isPrivate?.trim() === "true";
  return named.map((url) => ({ url, secrets: listOf(secrets), unsafeAllowPrivateAddresses }));
}

function listOf(text = ""): string[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
}

type LoadedFacilitator = ReservingFacilitator & { close(): Promise<void> };

async function importFacilitator() {
  try {
    return await import("@coinslot/facilitator");
  } catch (cause) {
    throw new ConfigurationError(
      "The payment middleware",
      [
        "no facilitator was passed, and @coinslot/facilitator is not installed: install it beside @coinslot/express",
      ],
      { cause },
    );
  }
}
