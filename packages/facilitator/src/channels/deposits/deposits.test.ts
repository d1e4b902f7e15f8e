import { channelEventsOf, withDatabase } from "@coinslot/devnet";
import { type ChannelConfig, toLowerHex } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

describe.each(enginesByDay("sqlite"))("deposits of payloads, on %s", (engine) => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet(engine);
    channels = here.channels;
    config = channels.configOf();
  });

  afterEach(() => here.stop());

  const sign = (options?: Parameters<typeof signDepositRequest>[2]) =>
    signDepositRequest(here, config, options);

  it("open a channel, by which the same request then buys", async () => {
    const facilitator = await here.start();
    const request = await sign();
    const outcome = await deposit(here, facilitator, request);
    expect(outcome).toMatchObject({
      state: "deposited",
      amount: 20_000n,
      channelState: { balance: 20_000n, totalClaimed: 0n, chargedCumulativeAmount: 0n },
    });
    if (outcome.state !== "deposited") throw new Error(outcome.state);
    const receipt = await here.devnet.client.getTransactionReceipt({ hash: outcome.transaction });
    expect(channelEventsOf(receipt)).toMatchObject([
      { eventName: "ChannelCreated" },
      { eventName: "Deposited", args: { amount: 20_000n } },
    ]);
    expect(await here.buyOnce(facilitator, price, config)).toBe(true);
  });

  it("are executed once, however often their payload comes, also after they are final", async () => {
    const facilitator = await here.start();
    const request = await sign();
    const first = await deposit(here, facilitator, request);
    const together = await Promise.all([1, 2, 3].map(() => deposit(here, facilitator, request)));
    expect(together).toEqual([first, first, first]);
    await here.devnet.mine(5);
    await vi.waitFor(async () => {
      const rows = await readRows();
      expect(rows).toMatchObject([{ state: "done", data: null }]);
      expect(rows[0]?.ended_at).not.toBeNull();
      expect(Number(rows[0]?.attempts)).toBe(1);
    }, patience);
    expect(await deposit(here, facilitator, request)).toEqual(first);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 20_000n });
  });

  it("deposits of many new buyers behind one address are no looks for channels without money", async () => {
    const facilitator = await here.start();
    await deposit(here, facilitator, await sign());
    const states = new Set<string>();
    const payers = Array.from({ length: 32 }, () => {
      const privateKey = generatePrivateKey();
      return { ...privateKeyToAccount(privateKey), privateKey };
    });
    const { devnet } = here;
    await devnet.mintInBlocks(payers.map(({ address: to }) => ({ to, amount: 20_000n })));
    for (const payer of payers) {
      const channel = channels.configOf({ payer: toLowerHex(payer.address) });
      const request = await signDepositRequest(here, channel, { payer });
      const asked = { ...request, timeoutMs: 1, limitKey: "192.0.2.1" };
      states.add((await present(facilitator, asked)).state);
    }
    expect([...states].filter((state) => state !== "deposited")).toEqual(["pending"]);
  });

  it("top a channel up, and one that is not needed is not executed", async () => {
    const facilitator = await here.start();
    await deposit(here, facilitator, await sign());
    await here.buy(facilitator, 20_000n, config);
    const ceiling = 22_000n;
    const needed = await sign({ ceiling });
    expect(await deposit(here, facilitator, needed)).toMatchObject({ state: "deposited" });
    const needless = await sign({ ceiling });
    expect(await present(facilitator, needless)).toEqual({ state: "needless" });
    expect(await channels.stateOf(config)).toMatchObject({ balance: 40_000n });
    expect(await here.buyOnce(facilitator, ceiling, config)).toBe(true);
  });

  it("are an outcome as well where another sender executes them before", async () => {
    const facilitator = await here.start();
    const salt = `0x${"07".repeat(32)}` as const;
    const request = await sign({ salt });
    const amount = 20_000n;
    await channels.deposit(config, amount, { salt });
    // This ledger has not known of it: the money is there, and the voucher buys.
    expect(await deposit(here, facilitator, request)).toEqual({ state: "needless" });
    expect(await here.buyOnce(facilitator, price, config)).toBe(true);
    expect(await readRows()).toEqual([]);
    expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
  });

  it("move no money where their voucher would buy nothing", async () => {
    const facilitator = await here.start();
    const ahead = await sign({ ceiling: 2n * price });
    expect(await deposit(here, facilitator, ahead)).toMatchObject({
      state: "corrected",
      channelState: { balance: 0n, chargedCumulativeAmount: 0n },
    });
    await deposit(here, facilitator, await sign());
    await here.buy(facilitator, price, config);
    expect(await deposit(here, facilitator, await sign({ ceiling: 3n * price }))).toMatchObject({
      state: "corrected",
      channelState: { balance: 20_000n, chargedCumulativeAmount: price },
    });
    expect(await channels.stateOf(config)).toMatchObject({ balance: 20_000n });
  });

  it("deposits that are forged are limited by their caller, also on a channel with money", async () => {
    const facilitator = await here.start();
    await deposit(here, facilitator, await sign());
    await here.buy(facilitator, 20_000n, config);
    const { seller } = here.devnet.accounts;
    const forged = { ...(await sign({ ceiling: 22_000n, payer: seller })), limitKey: "caller" };
    for (let count = 1; count <= 30; count += 1) {
      expect(await present(facilitator, forged)).toMatchObject({ state: "refused" });
    }
    expect(await present(facilitator, forged)).toMatchObject({ state: "busy" });
    const honest = { ...(await sign({ ceiling: 22_000n })), limitKey: "another" };
    expect(await deposit(here, facilitator, honest)).toMatchObject({ state: "deposited" });
  });

  it("deposits that are too many are limited by their caller, too: each is tried by a node", async () => {
    const facilitator = await here.start();
    await deposit(here, facilitator, await sign());
    await here.buy(facilitator, 20_000n, config);
    await failThrice();
    const request = { ...(await sign({ ceiling: 22_000n })), limitKey: "caller" };
    for (let count = 1; count <= 30; count += 1) {
      expect(await present(facilitator, request)).toMatchObject({ state: "payer_limited" });
    }
    expect(await present(facilitator, request)).toMatchObject({ state: "busy" });
  });

  it("deposits that wait share the reads of their channel", async () => {
    /** Calls under way, by their parameters. */
    const underWay = new Map<string, number>();
    let most = 0;
    const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) => {
      if (call.method !== "eth_call") return ask();
      const key = JSON.stringify(call.params);
      const count = (underWay.get(key) ?? 0) + 1;
      underWay.set(key, count);
      most = Math.max(most, count);
      const answer = await ask();
      underWay.set(key, (underWay.get(key) ?? 0) - 1);
      return answer;
    });
    onTestFinished(() => node.close());
    // A slow machine mines many blocks until the deposit is deep enough: none makes it final.
    const finalAfter = 200;
    await here.devnet.mine(finalAfter);
    const network = { rpcUrls: [node.url], finalAfter };
    const facilitator = await here.start({}, { network });
    const salt = `0x${"07".repeat(32)}` as const;
    await deposit(here, facilitator, await sign({ salt }));
    // Executed, and not final: its money does not cover this voucher.
    const ahead = { ...(await sign({ salt, ceiling: 100_000n })), timeoutMs: 1_000 };
    most = 0;
    const waiting = Array.from({ length: 40 }, () => present(facilitator, ahead));
    const states = (await Promise.all(waiting)).map(({ state }) => state);
    expect(new Set(states)).toEqual(new Set(["pending"]));
    expect(most).toBe(1);
  });

  it("are worth their gas, whatever the offer asks for", async () => {
    // Nine rows of a claim: 18,000.
    const facilitator = await here.start({ claimCost: 1_000n, minDepositWorth: 2 });
    await here.admit(facilitator, price, config);
    expect(facilitator.channels?.minDepositOf?.(here.devnet.network)).toBe(18_000n);
    const below = { ...(await sign({ amount: 17_999n })), minDeposit: 1n };
    expect(await deposit(here, facilitator, below)).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_deposit_below_min_deposit",
    });
    const worth = { ...(await sign({ amount: 18_000n })), minDeposit: 1n };
    expect(await deposit(here, facilitator, worth)).toMatchObject({ state: "deposited" });
  });

  it("are as many a day for a signer as the options say", async () => {
    const facilitator = await here.start({ maxDepositsPerSigner: 1 });
    await deposit(here, facilitator, await sign());
    await here.buy(facilitator, 20_000n, config);
    const next = await sign({ ceiling: 22_000n });
    expect(await present(facilitator, next)).toMatchObject({ state: "payer_limited" });
  });

  it("are refused by their reason, and leave no row", async () => {
    const facilitator = await here.start();
    await here.admit(facilitator, price, config);
    const { seller } = here.devnet.accounts;
    const refusals = [
      [{ amount: 10n * price - 1n }, "deposit_below_min_deposit"],
      [{ validBefore: 1_000n }, "payload_authorization_valid_before"],
      [{ payer: seller }, "receive_authorization_signature"],
      [{ amount: 10n ** 12n }, "insufficient_balance"],
    ] as const;
    for (const [options, reason] of refusals) {
      expect(await deposit(here, facilitator, await sign(options))).toEqual({
        state: "refused",
        reason: `invalid_batch_settlement_evm_${reason}`,
      });
    }
    const other = channels.configOf();
    const request = await sign();
    const { erc3009Authorization: _, ...none } = request.deposit.authorization;
    const permit2Authorization = {
      from: config.payer,
      permitted: { token: config.token, amount: 20_000n },
      spender: config.receiver,
      nonce: 1n,
      deadline: 4_000_000_000n,
      witness: { channelId: channels.idOf(config) },
      signature: "0x",
    } as const;
    const authorization = { ...none, permit2Authorization };
    const byPermit2 = { ...request, deposit: { amount: 20_000n, authorization } };
    expect(await present(facilitator, byPermit2)).toMatchObject({
      reason: "invalid_batch_settlement_evm_erc3009_authorization_required",
    });
    // The nonce is a hash of the channel's id and the salt: the signature is of another one.
    const foreign = await signDepositRequest(here, other);
    expect(
      await deposit(here, facilitator, { ...request, deposit: foreign.deposit }),
    ).toMatchObject({ reason: "invalid_batch_settlement_evm_receive_authorization_signature" });
    expect(await readRows()).toEqual([]);
  });

  /** As three deposits of the payer's that transactions carried in vain. */
  async function failThrice(): Promise<void> {
    const kept = "contract, channel_id, signer, amount, valid_before, has_code, since_number";
    const same = `network, token, payer, ${kept}, created_at, ended_at`;
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute(
        ["a", "b", "c"]
          .map(
            (nonce) =>
              `insert into channel_deposits (${same}, nonce, state, attempts)
               select ${same}, '0x${nonce.repeat(64)}', 'failed', 1
                 from channel_deposits where state = 'done'`,
          )
          .join(";"),
      ),
    );
  }

  function readRows() {
    return withDatabase(here.ledger.url, ({ read }) => read("select * from channel_deposits"));
  }
});
