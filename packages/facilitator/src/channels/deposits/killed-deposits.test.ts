import { once } from "node:events";
import { channelEventsOf, withDatabase } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { channelContracts } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { deposit, signDepositRequest, wireOf } from "../../testing/channel-deposits.ts";
import { price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const program = useProgram(settlingProgram);

const points = [
  "deposit_queued",
  "signed",
  "stored",
  "broadcast",
  "included",
  "deposit_recorded",
] as const;

describe.each(enginesByDay("sqlite"))(
  "a process that is killed while it deposits, on %s",
  (engine) => {
    it.each(points)(
      "a kill at %s leaves one deposit, by which the same request buys",
      async (dieAt) => {
        const here = await startClaimingDevnet(engine);
        onTestFinished(() => here.stop());
        const { devnet, channels } = here;
        const config = channels.configOf();
        const request = await signDepositRequest(here, config);
        const { privateKey } = devnet.accounts.deployer;
        const child = spawnSettling(program(), here, [], {
          dieAt,
          channels: { privateKey },
          deposit: { payload: wireOf(request), price: `${price}` },
        });
        onTestFinished(() => void child.kill("SIGKILL"));
        const mining = setInterval(() => void devnet.mine(1), 300);
        try {
          const [, signal] = await once(child, "exit");
          expect(signal).toBe("SIGKILL");
        } finally {
          clearInterval(mining);
        }

        const next = await here.start();
        const outcome = await deposit(here, next, request);
        expect(outcome).toMatchObject({ state: "deposited", amount: 20_000n });
        expect(await here.buyOnce(next, price, config)).toBe(true);
        await devnet.mine(5);
        expect(await channels.stateOf(config)).toMatchObject({ balance: 20_000n });
        const logs = await devnet.client.getLogs({
          address: channelContracts.settlement,
          fromBlock: 0n,
        });
        const deposits = channelEventsOf({ logs }).filter(
          ({ eventName }) => eventName === "Deposited",
        );
        expect(deposits).toHaveLength(1);
        const rows = await withDatabase(here.ledger.url, ({ read }) =>
          read("select state from channel_deposits"),
        );
        expect(rows).toEqual([{ state: "done" }]);
      },
    );
  },
);
