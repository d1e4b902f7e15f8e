import { createLogger } from "../create-logger.ts";
import type { Environment } from "../environment/read-secret.ts";
import { runFacilitatorService } from "./run-service.ts";

/** A local chain with the test token: a devnet, whose keys are public. */
export interface TrialChain {
  rpcUrl: string;
  network: string;
  token: string;
  accounts: {
    relayer: { privateKey: string };
    seller: { address: string };
    buyer: { privateKey: string };
  };
}

/** Variables of the environment that also count for a trial; all others are the chain's. */
const kept = ["FACILITATOR_HOST", "FACILITATOR_PORT", "FACILITATOR_KEYS", "FACILITATOR_KEYS_FILE"];

/** Runs the hosted facilitator on a local chain until the signal, and prints how to try it. */
export async function runFacilitatorTrial(options: {
  chain: TrialChain;
  env: Environment;
  signal: AbortSignal;
  print: (text: string) => void;
}): Promise<void> {
  const { env, signal, print } = options;
  const { accounts, rpcUrl, network, token } = options.chain;
  await runFacilitatorService({
    env: {
      ...Object.fromEntries(kept.map((name) => [name, env[name]])),
      COINSLOT_NETWORK: network,
      COINSLOT_RPC_URL: rpcUrl,
      // Records of a chain end with it.
      COINSLOT_LEDGER: "sqlite::memory:",
      FACILITATOR_PRIVATE_KEY: accounts.relayer.privateKey,
      FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
    },
    signal,
    logger: createLogger("error"),
    onServing({ url }) {
      print(`
Serving at ${url}, on a devnet at ${rpcUrl} (${network}, token ${token}).

  curl ${url}/supported

For a seller and a buyer who try it:

  export FACILITATOR_URL=${url} COINSLOT_RPC_URL=${rpcUrl}
  export PAY_TO=${accounts.seller.address}
  export WALLET_PRIVATE_KEY=${accounts.buyer.privateKey}

This key is public: never send its account anything of value. Ctrl-C stops it.`);
    },
  });
}
