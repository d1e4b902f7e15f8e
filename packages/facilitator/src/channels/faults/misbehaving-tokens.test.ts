import { systemClock } from "@coinslot/chain";
import { type Behaviour, behaviours, misbehavingToken } from "@coinslot/devnet";
import { type ChannelConfig, type Hex, toLowerHex } from "@coinslot/protocol";
import pino from "pino";
import { encodeFunctionData, parseAbi, toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { deposit, signDepositRequest } from "../../testing/channel-deposits.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

const blockAbi = parseAbi(["function setBlocked(address account, bool isBlocked_)"]);

describe("a token that misbehaves", () => {
  let here: ClaimingDevnet;
  let token: Hex;
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    const { devnet, channels } = here;
    token = toLowerHex(await devnet.deployMisbehavingToken("honest"));
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 10n ** 9n, token });
    config = channels.configOf({ token });
  });

  afterEach(() => here.stop());

  async function call(data: Hex) {
    const { client, accounts } = here.devnet;
    const hash = await client.sendTransaction({ account: accounts.deployer, to: token, data });
    await client.waitForTransactionReceipt({ hash });
  }

  const behave = (behaviour: Behaviour) =>
    call(
      encodeFunctionData({
        abi: misbehavingToken.abi,
        functionName: "setBehaviour",
        args: [behaviours[behaviour]],
      }),
    );

  const setBlocked = (account: Hex, isBlocked: boolean) =>
    call(
      encodeFunctionData({ abi: blockAbi, functionName: "setBlocked", args: [account, isBlocked] }),
    );

  function balanceOf(account: Hex) {
    const abi = misbehavingToken.abi;
    const args = [account] as const;
    return here.devnet.client.readContract({
      address: token,
      abi,
      functionName: "balanceOf",
      args,
    });
  }

  /** Sells for 24 prices on a channel, has its payer withdraw, and waits for the claim. */
  async function sellAndClaim() {
    const facilitator = await here.start();
    await here.channels.deposit(config, 100_000n);
    await here.buy(facilitator, 24n * price, config);
    await here.channels.withdraw(config, 60_000n);
    await here.claimed(24n * price, config);
    await here.drained(facilitator);
    expect(await here.lost(facilitator)).toBe(0);
    return facilitator;
  }

  /** Settles are tried at the start of a process. */
  async function restart(facilitator: Awaited<ReturnType<typeof sellAndClaim>>) {
    await facilitator.close();
    return here.start();
  }

  function settled(amount: bigint) {
    const { seller } = here.devnet.accounts;
    return vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await balanceOf(seller.address)).toBe(amount);
    }, patience);
  }

  it("a token that misbehaves by reverting is claimed all the same, and settled once it pays", async () => {
    const first = await here.start();
    await here.channels.deposit(config, 100_000n);
    await here.buy(first, 24n * price, config);
    await behave("reverts");
    await here.channels.withdraw(config, 60_000n);
    await here.claimed(24n * price, config);
    await here.drained(first);
    const second = await restart(first);
    await here.devnet.mine(3);
    const { address } = here.devnet.accounts.relayer;
    const before = await here.devnet.client.getTransactionCount({ address });
    await here.admit(second, 25n * price, config);
    // Nothing was sent that would revert.
    expect(await here.devnet.client.getTransactionCount({ address })).toBe(before);
    await behave("honest");
    await restart(second);
    await settled(24n * price);
  });

  it("a token that misbehaves by reverting is tried less often, and reported once a day", async () => {
    const { devnet, channels } = here;
    const settleCall = toFunctionSelector("settle(address,address)");
    let aheadMs = 0;
    let trials = 0;
    const errors: string[] = [];
    const logger = pino({ level: "error" }, { write: (line) => void errors.push(line) });
    const node = await startNodeProxy(devnet.rpcUrl, ({ method, params }, ask) => {
      if (method === "eth_call" && JSON.stringify(params).includes(settleCall)) trials += 1;
      return ask();
    });
    onTestFinished(node.close);
    const facilitator = await here.start(
      {},
      {
        logger,
        network: { rpcUrls: [node.url] },
        clock: {
          now: () => performance.now() + aheadMs,
          // A look at a quiet chain each 9 seconds, a hundredth of the delay.
          setTimer: (run, ms) => systemClock.setTimer(run, ms === 9_000 ? 50 : ms),
        },
      },
    );
    await channels.deposit(config, 100_000n);
    await here.buy(facilitator, 24n * price, config);
    await behave("reverts");
    await channels.withdraw(config, 60_000n);
    await here.claimed(24n * price, config);
    await here.drained(facilitator);
    for (let minutes = 0; minutes < 30; minutes += 1) {
      aheadMs += 61_000;
      await devnet.mine(1);
      const until = Number(await devnet.client.getBlockNumber());
      await vi.waitFor(async () => {
        const watched = await here.metric(facilitator, "coinslot_channels_watched_block");
        expect(watched).toBeGreaterThanOrEqual(until);
      }, patience);
    }
    await vi.waitFor(() => expect(trials).toBeGreaterThan(3), patience);
    expect(trials).toBeLessThan(15);
    const refusals = errors.filter((line) => line.includes("the token refuses the transfer"));
    expect(refusals).toHaveLength(1);
    aheadMs += 86_400_000;
    await vi.waitFor(async () => {
      await devnet.mine(1);
      expect(errors.join().split("the token refuses the transfer")).toHaveLength(3);
    }, patience);
    await facilitator.close();
  });

  it("a token that misbehaves by blocking one receiver leaves the others settled", async () => {
    const { devnet, channels } = here;
    const other = toLowerHex(devnet.accounts.deployer.address);
    const blocked = channels.configOf({ token, receiver: other });
    const facilitator = await here.start();
    for (const each of [blocked, config]) {
      await channels.deposit(each, 100_000n);
      await here.buy(facilitator, 24n * price, each);
    }
    await setBlocked(other, true);
    // A claim amid the purchases would leave the rest unclaimed until a payer withdraws.
    for (const each of [blocked, config]) await channels.withdraw(each, 60_000n);
    for (const each of [blocked, config]) await here.claimed(24n * price, each);
    await here.drained(facilitator);
    await restart(facilitator);
    await settled(24n * price);
    expect(await balanceOf(other)).toBe(0n);
  });

  it("a token that misbehaves by blocking the payer is claimed, and keeps nothing of the seller's", async () => {
    const { buyer } = here.devnet.accounts;
    const first = await here.start();
    await here.channels.deposit(config, 100_000n);
    await here.buy(first, 24n * price, config);
    await setBlocked(buyer.address, true);
    await here.channels.withdraw(config, 60_000n);
    await here.claimed(24n * price, config);
    await here.drained(first);
    await restart(first);
    await settled(24n * price);
  });

  it.each([
    ["takesFee", (24n * price * 99n) / 100n],
    ["returnsNothing", 24n * price],
  ] as const)(
    "a token that misbehaves as one that %s is settled once, for what arrives",
    async (behaviour, arrives) => {
      const facilitator = await sellAndClaim();
      await behave(behaviour);
      await restart(facilitator);
      await settled(arrives);
    },
  );

  it.each(["reverts", "takesFee", "transfersLess"] as const)(
    "a token that misbehaves as one that %s takes no deposit of a payload, and no gas",
    async (behaviour) => {
      const facilitator = await here.start();
      await here.admit(facilitator, price, config);
      await behave(behaviour);
      const { address } = here.devnet.accounts.relayer;
      const before = await here.devnet.client.getTransactionCount({ address });
      const request = await signDepositRequest(here, config);
      expect(await deposit(here, facilitator, request)).toEqual({
        state: "refused",
        reason: "invalid_batch_settlement_evm_deposit_simulation_failed",
      });
      expect(await here.devnet.client.getTransactionCount({ address })).toBe(before);
      await behave("honest");
      expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
    },
  );
});
