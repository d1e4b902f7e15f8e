// Notes in the log of `docker compose up`: which profile to choose, and how to buy once everything
// serves.
import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const sold =
  "http://127.0.0.1:4021/api/v1/plasma/usdt/0x90F79bf6EB2c4f870365E785982E1f101E93b906/token-balances";

const notes = {
  // With a profile it stays silent: the services of every profile have a named one.
  async "choose-profile"() {
    for (let second = 0; second < 10; second += 1) {
      const found = await Promise.allSettled(["devnet", "postgres"].map((name) => lookup(name)));
      if (found.some(({ status }) => status === "fulfilled")) return undefined;
      await wait(1_000);
    }
    return `Nothing was started: choose a profile.
  docker compose --profile devnet up --build    a chain made for the occasion, nothing to configure
  docker compose --profile live up --build      a real chain; docs/facilitator.md says what it needs`;
  },

  devnet:
    () => `Everything serves: the facilitator on port 4022, the paid indexer on port 4021, the console on port 4040.
To buy, in another terminal and this folder:
  npm install
  export COINSLOT_NETWORK=${shared("COINSLOT_NETWORK")} COINSLOT_RPC_URL=http://127.0.0.1:8545
  export WALLET_PRIVATE_KEY=${shared("WALLET_PRIVATE_KEY")}
  npm run coinslot -- pay ${sold}
This key is public: never send its account anything of value.
To look at the payments, and refund them, open the link that the console has printed:
  docker compose --profile devnet logs devnet-console`,

  live: (
    network,
  ) => `Everything serves: the facilitator on port 4022, the paid indexer on port 4021, the console on port 4040.
To buy, with an account that holds USDT0 on ${network}:
  export COINSLOT_NETWORK=${network} COINSLOT_RPC_URL=<an endpoint of it>
  export WALLET_SEED_PHRASE_FILE=<a file with the buyer's seed phrase>
  npm run coinslot -- pay ${sold}
To look at the payments, and refund them, open the link that the console has printed:
  docker compose --profile live logs console`,
};

function shared(name) {
  return readFileSync(`/shared/${name}`, "utf8").trim();
}

const note = await notes[process.argv[2]](process.argv[3]);
if (note !== undefined) console.log(`\n${note}\n`);
