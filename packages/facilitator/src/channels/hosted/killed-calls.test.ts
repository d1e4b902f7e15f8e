import { once } from "node:events";
import { text } from "node:stream/consumers";
import { channelEventsOf, withDatabase } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { type ChannelConfig, channelContracts } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import { type Engine, enginesByDay } from "../../testing/settling-devnet.ts";

const program = useProgram(settlingProgram);
const points = ["signed", "stored", "broadcast", "included"] as const;

async function openHere(engine: Engine) {
  const here = await startHostingDevnet(engine);
  onTestFinished(() => here.stop());
  const config = await here.open(9_000n);
  const claims = [await here.channels.rowOf(config, 4_000n)];
  const refund = await here.refund(config, 4_000n, { amount: 5_000n, claims });
  return { here, config, claims, refund };
}

/** A process that asks for a call of the seller, as one of its callers. */
function spawnCaller(here: HostingDevnet, payload: object, dieAt?: (typeof points)[number]) {
  const { seller, deployer } = here.devnet.accounts;
  const { privateKey } = deployer;
  const hosted = { body: here.bodyOf(payload), receiver: seller.address, privateKey };
  const child = spawnSettling(program(), here, [], { dieAt, hosted });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function eventsOf({ devnet, channels }: HostingDevnet, config: ChannelConfig) {
  const { settlement: address } = channelContracts;
  const logs = await devnet.client.getLogs({ address, fromBlock: 0n });
  const own = logs.filter(({ topics }) => topics[1] === channels.idOf(config));
  return channelEventsOf({ logs: own }).map(({ eventName }) => eventName);
}

describe.each(enginesByDay("sqlite"))("a hosted facilitator that is killed, on %s", (engine) => {
  it.each(points)(
    "a facilitator killed at %s claims and refunds once, and answers the repeated request",
    async (dieAt) => {
      const { here, config, refund } = await openHere(engine);
      const child = spawnCaller(here, refund, dieAt);
      const [, signal] = await once(child, "exit");
      expect(signal).toBe("SIGKILL");

      const next = await here.start();
      const answer = await here.settle(next, refund);
      expect(answer).toMatchObject({
        state: "done",
        amount: 5_000n,
        channelState: { balance: 4_000n, totalClaimed: 4_000n, refundNonce: 1n },
      });
      expect(await eventsOf(here, config)).toEqual([
        "ChannelCreated",
        "Deposited",
        "Claimed",
        "Refunded",
      ]);
      const rows = await withDatabase(here.ledger.url, ({ read }) =>
        read("select kind, state from caller_calls"),
      );
      expect(rows).toEqual([{ kind: "refund", state: "done" }]);
    },
  );
});

describe("hosted facilitators on one PostgreSQL", () => {
  it("send one claim of two that are asked of both at once, and give one answer", async () => {
    const { here, config, claims } = await openHere("postgres");
    const before = await here.devnet.client.getTransactionCount(here.devnet.accounts.relayer);
    const claim = here.claim(claims);
    // The relayer's lease is one process's: the other's requests wait for it, or follow its call.
    const children = [spawnCaller(here, claim), spawnCaller(here, claim)];
    const answers = await Promise.all(
      children.map(async (child) => {
        const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
        return output.split("\n")[0] ?? "";
      }),
    );
    const done = answers.filter((each) => /^done 0x[0-9a-f]{64}$/.test(each));
    expect(done.length).toBeGreaterThan(0);
    expect(new Set(done).size).toBe(1);
    expect(await here.channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
    const after = await here.devnet.client.getTransactionCount(here.devnet.accounts.relayer);
    expect(after - before).toBe(1);

    // A third process has the same answer.
    const next = await here.start();
    const answer = await here.settle(next, claim);
    expect(done).toContain(`done ${"transaction" in answer ? answer.transaction : ""}`);
  });
});
