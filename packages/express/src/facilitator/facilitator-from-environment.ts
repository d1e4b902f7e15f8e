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
 *
 * The middleware itself reads `COINSLOT_PUBLIC_URL` beside these: `publicUrl` of its options.
 *
 * Missing variables are reported at once. The facilitator checks the values.
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
    const { createFacilitator } = await importFacilitator();
    if (!isNetwork(network)) throw new ConfigurationError("The facilitator", ["no network is set"]);
    return createFacilitator({
      networks: [{ network, rpcUrls: rpcUrls.split(",").map((url) => url.trim()), relayer }],
      ledger,
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
