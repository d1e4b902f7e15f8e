import { pino } from "pino";
import { devnetEnvironment } from "../devnet/devnet-environment.ts";
import { loadDevnet } from "../devnet/load-devnet.ts";
import type { Terminal } from "../terminal.ts";
import { runFacilitatorService } from "./run-service.ts";

const tokensForBuyer = 1_000_000_000n;

/** What of the environment also counts for a trial; all else is the devnet's. */
const kept = ["FACILITATOR_HOST", "FACILITATOR_PORT", "FACILITATOR_KEYS", "FACILITATOR_KEYS_FILE"];

/** Runs the hosted facilitator on a local chain of its own. Both end together, and leave nothing. */
export async function tryOnDevnet(terminal: Terminal): Promise<void> {
  const { startDevnet } = await loadDevnet();
  const devnet = await startDevnet();
  try {
    const { accounts, rpcUrl, network, token } = devnet;
    await devnet.mint({ to: accounts.buyer.address, amount: tokensForBuyer });
    const env = {
      ...Object.fromEntries(kept.map((name) => [name, terminal.env[name]])),
      ...devnetEnvironment(devnet),
      FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
    };
    await runFacilitatorService({
      env,
      signal: terminal.signal,
      logger: pino({ level: "error" }),
      onServing({ url }) {
        terminal.out(`
Serving at ${url}, on a devnet at ${rpcUrl} (${network}, token ${token}).

  curl ${url}/supported

For a seller and a buyer who try it:

  export FACILITATOR_URL=${url} COINSLOT_RPC_URL=${rpcUrl}
  export PAY_TO=${accounts.seller.address}
  export WALLET_PRIVATE_KEY=${accounts.buyer.privateKey}

Everybody knows this key: never send its account anything of value. Ctrl-C stops it.`);
      },
    });
  } finally {
    await devnet.stop();
  }
}
