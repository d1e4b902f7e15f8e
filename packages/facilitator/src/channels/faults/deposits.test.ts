import { withDatabase } from "@coinslot/devnet";
import { type ChannelConfig, depositNonce, type Hex, toLowerHex } from "@coinslot/protocol";
import { encodeFunctionData, parseAbi, parseGwei } from "viem";
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

const transferAbi = parseAbi(["function transfer(address to, uint256 value) returns (bool)"]);
const salt: Hex = `0x${"07".repeat(32)}`;
const amount = 20_000n;

describe.each(enginesByDay("postgres"))("deposits under faults, on %s", (engine) => {
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

  const readRows = () =>
    withDatabase(here.ledger.url, ({ read }) => read("select * from channel_deposits"));

  /** Waits for the transaction of a deposit in the pool of a chain that does not mine. */
  const inPool = () =>
    vi.waitFor(async () => {
      const { pending } = await here.devnet.client.getTxpoolStatus();
      expect(pending).toBe(1);
    }, patience);

  /** The buyer's transfer of all that it has, before all else in its block. */
  async function emptyFirst() {
    const { client, accounts, token } = here.devnet;
    const value = await here.balanceOf(accounts.buyer.address);
    const args = [accounts.deployer.address, value] as const;
    const data = encodeFunctionData({ abi: transferAbi, functionName: "transfer", args });
    const fees = { maxFeePerGas: parseGwei("500"), maxPriorityFeePerGas: parseGwei("200") };
    await client.sendTransaction({
      account: accounts.buyer,
      to: token,
      data,
      gas: 200_000n,
      ...fees,
    });
  }

  it("are sent again after a reorganisation that takes them back, served or not", async () => {
    const facilitator = await here.start();
    const request = await sign();
    const outcome = await deposit(here, facilitator, request);
    if (outcome.state !== "deposited") throw new Error(outcome.state);
    expect(await here.buyOnce(facilitator, price, config)).toBe(true);
    const { client } = here.devnet;
    const [{ number }, receipt] = await Promise.all([
      client.getBlock(),
      client.getTransactionReceipt({ hash: outcome.transaction }),
    ]);
    await here.devnet.reorg({ depth: Number(number - receipt.blockNumber) + 1 });
    expect(await channels.stateOf(config)).toMatchObject({ balance: 0n });
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
    }, patience);
    // The charge stands: it counted as lost until the deposit was there again.
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.buyOnce(facilitator, 2n * price, config)).toBe(true);
    }, patience);
    expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
    expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
  });

  it("deposits that a stranger executes in front of ours are an outcome, with the stranger's hash", async () => {
    const facilitator = await here.start();
    await here.admit(facilitator, price, config);
    await here.devnet.setAutomine(false);
    const request = await sign({ salt });
    const pending = await present(facilitator, { ...request, timeoutMs: 100 });
    expect(pending).toMatchObject({ state: "pending" });
    await inPool();
    const data = await channels.signDeposit(config, amount, { salt });
    await here.sendDepositFirst(config, { amount, data });
    await here.devnet.mine(1);
    await here.devnet.setAutomine(true);
    const outcome = await deposit(here, facilitator, request);
    if (outcome.state !== "deposited") throw new Error(outcome.state);
    const { from } = await here.devnet.client.getTransaction({ hash: outcome.transaction });
    expect(from).toBe(here.devnet.accounts.seller.address.toLowerCase());
    expect(await here.buyOnce(facilitator, price, config)).toBe(true);
    expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
  });

  it("deposits whose payer takes its balance away in front of them fail, three times a day", async () => {
    const facilitator = await here.start();
    await here.admit(facilitator, price, config);
    const { devnet } = here;
    for (let count = 1; count <= 3; count += 1) {
      await devnet.mint({ to: devnet.accounts.buyer.address, amount });
      await devnet.setAutomine(false);
      const request = await sign();
      await present(facilitator, { ...request, timeoutMs: 100 });
      await inPool();
      await emptyFirst();
      await devnet.mine(1);
      await devnet.setAutomine(true);
      expect(await deposit(here, facilitator, request)).toMatchObject({
        state: "refused",
        reason: expect.stringMatching(/deposit_transaction_failed|insufficient_balance/),
      });
    }
    await devnet.mint({ to: devnet.accounts.buyer.address, amount });
    expect(await present(facilitator, await sign())).toMatchObject({ state: "payer_limited" });
    const rows = await readRows();
    expect(rows.map(({ state }) => state)).toEqual(["failed", "failed", "failed"]);
    expect(rows.map(({ data }) => data)).toEqual([null, null, null]);
  });

  /** A transaction carries it, and its payer's tokens are gone before. */
  async function carryInVain(
    facilitator: Awaited<ReturnType<ClaimingDevnet["start"]>>,
    request: Awaited<ReturnType<typeof sign>>,
  ): Promise<void> {
    const { devnet } = here;
    await devnet.mint({ to: devnet.accounts.buyer.address, amount });
    await devnet.setAutomine(false);
    await present(facilitator, { ...request, timeoutMs: 100 });
    await inPool();
    await emptyFirst();
    await devnet.mine(1);
    await devnet.setAutomine(true);
    expect(await deposit(here, facilitator, request)).toMatchObject({ state: "refused" });
  }

  it("brought again count by their transactions: three in vain a day, of one signature", async () => {
    const facilitator = await here.start();
    await here.admit(facilitator, price, config);
    const { buyer, relayer } = here.devnet.accounts;
    const request = await sign();
    for (let count = 1; count <= 3; count += 1) await carryInVain(facilitator, request);
    await here.devnet.mint({ to: buyer.address, amount });
    expect(await present(facilitator, request)).toMatchObject({ state: "payer_limited" });
    expect(await present(facilitator, await sign())).toMatchObject({ state: "payer_limited" });
    const { address } = relayer;
    expect(await here.devnet.client.getTransactionCount({ address })).toBe(3);
  });

  it("deposits of all payers with code share one gas budget", async () => {
    const facilitator = await here.start();
    await here.admit(facilitator, price, config);
    const { devnet } = here;
    await carryInVain(facilitator, await sign());
    // As if another wallet, with code, had burnt all of it a moment ago.
    const other = `payer = '0x${"11".repeat(20)}', signer = '0x${"22".repeat(20)}'`;
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute(
        `update channel_deposits set has_code = 1, gas = 4000000, spent_at = ${Date.now()}, ${other}`,
      ),
    );
    const accepting = await devnet.deploySmartAccount({ owner: devnet.accounts.buyer.address });
    await devnet.mint({ to: accepting, amount });
    config = channels.configOf({ payer: toLowerHex(accepting) });
    await expect(present(facilitator, await sign())).rejects.toThrow(/gas .* is used up/);
  });

  it("deposits of wallets that tell a transaction from a trial by its price are not sent", async () => {
    let aheadMs = 0;
    const facilitator = await here.start({}, { now: () => Date.now() + aheadMs });
    const { devnet } = here;
    const wallet = await devnet.deployLyingWallet();
    await devnet.setLie(wallet, "hasOrigin");
    await devnet.mint({ to: wallet, amount });
    config = channels.configOf({ payer: toLowerHex(wallet) });
    const request = { ...(await sign()), timeoutMs: 500 };
    // Busy until the chain is followed.
    await vi.waitFor(async () => {
      expect(await present(facilitator, request)).toMatchObject({ state: "pending" });
    }, patience);
    aheadMs = 60_000;
    const row = { state: "failed", attempts: expect.toSatisfy((count) => Number(count) === 0) };
    await vi.waitFor(async () => expect(await readRows()).toMatchObject([row]), patience);
    const { address } = devnet.accounts.relayer;
    expect(await devnet.client.getTransactionCount({ address })).toBe(0);
  });

  it("deposits of payers that get code before they are sent are not sent as those of keys", async () => {
    const { devnet } = here;
    const { buyer, relayer } = devnet.accounts;
    const delegate = await devnet.deployLyingWallet();
    let looks = 0;
    const node = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
      if (call.method === "eth_getCode" && call.params[0] === toLowerHex(buyer.address)) {
        looks += 1;
        if (looks === 2) await devnet.delegate(buyer, delegate);
      }
      return ask();
    });
    onTestFinished(node.close);
    const facilitator = await here.start({}, { network: { rpcUrls: [node.url] } });
    await here.admit(facilitator, price, config);
    expect(await present(facilitator, await sign())).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_deposit_simulation_failed",
    });
    const { address } = relayer;
    expect(await devnet.client.getTransactionCount({ address })).toBe(0);
  });

  it("deposits of requests at once end in one, and the others are corrected by its channel", async () => {
    const facilitator = await here.start();
    await here.admit(facilitator, price, config);
    const requests = await Promise.all([sign(), sign(), sign()]);
    const outcomes = await Promise.all(requests.map((each) => deposit(here, facilitator, each)));
    expect(outcomes.map(({ state }) => state).sort()).toEqual([
      "deposited",
      "needless",
      "needless",
    ]);
    expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
  });

  it("are pending with their hash while no node answers, and go on with the next one", async () => {
    let isDown = false;
    const { rpcUrl } = here.devnet;
    const node = await startNodeProxy(rpcUrl, async (_, ask) => (isDown ? undefined : ask()));
    try {
      const facilitator = await here.start({}, { network: { rpcUrls: [node.url] } });
      await here.admit(facilitator, price, config);
      await here.devnet.setAutomine(false);
      const request = await sign();
      await present(facilitator, { ...request, timeoutMs: 100 });
      await inPool();
      isDown = true;
      expect(await present(facilitator, { ...request, timeoutMs: 500 })).toMatchObject({
        state: "pending",
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      });
      // Nothing is queued that was not tried.
      const other = { ...(await sign()), timeoutMs: 200 };
      expect(await present(facilitator, other)).toMatchObject({ state: "busy" });
      expect(await readRows()).toHaveLength(1);
      isDown = false;
      await here.devnet.setAutomine(true);
      await here.devnet.mine(1);
      expect(await deposit(here, facilitator, request)).toMatchObject({ state: "deposited" });
      expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
      await facilitator.close();
    } finally {
      await node.close();
    }
  });

  it("deposits in another name leave that payer's limits alone, and need its signature", async () => {
    const facilitator = await here.start();
    const { seller } = here.devnet.accounts;
    config = channels.configOf({ payerAuthorizer: toLowerHex(seller.address) });
    const request = await sign({ payer: seller, signer: seller });
    expect(await deposit(here, facilitator, request)).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_receive_authorization_signature",
    });
    expect(await readRows()).toEqual([]);
  });

  it("deposits of a contract are executed where it accepts the signature, and tried alone before", async () => {
    const facilitator = await here.start();
    const { devnet } = here;
    const { buyer, seller } = devnet.accounts;
    const accepting = await devnet.deploySmartAccount({ owner: buyer.address });
    await devnet.mint({ to: accepting, amount });
    config = channels.configOf({ payer: toLowerHex(accepting) });
    expect(await deposit(here, facilitator, await sign())).toMatchObject({ state: "deposited" });
    expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
    const refusing = await devnet.deploySmartAccount({ owner: seller.address });
    await devnet.mint({ to: refusing, amount });
    config = channels.configOf({ payer: toLowerHex(refusing) });
    expect(await deposit(here, facilitator, await sign())).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_deposit_simulation_failed",
    });
    expect(await readRows()).toHaveLength(1);
  });

  it("are not found by an exact payment with the same nonce, nor find its row", async () => {
    const facilitator = await here.start();
    const nonce = depositNonce({ channelId: channels.idOf(config), salt });
    const { paymentPayload, paymentRequirements } = await here.pay({
      authorization: { nonce },
    });
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);
    expect(settled).toMatchObject({ success: true });
    // The token has used the nonce up: nothing is executed, and no money comes.
    const outcome = await present(facilitator, { ...(await sign({ salt })), timeoutMs: 1_000 });
    expect(["pending", "busy"]).toContain(outcome.state);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 0n });
    const other = await sign();
    await deposit(here, facilitator, other);
    expect((await facilitator.payments.list()).payments).toHaveLength(1);
  });

  if (engine === "postgres") {
    it("deposits that come to a process without a relayer are sent by another one", async () => {
      const [first, second] = [await here.start(), await here.start()];
      const outcome = await deposit(here, second, await sign());
      expect(outcome).toMatchObject({ state: "deposited" });
      // One was sent and one is done, whichever process has found that.
      const counts = await Promise.all(
        [first, second].map((each) => here.metric(each, "coinslot_channel_deposits_total")),
      );
      expect(counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)).toBe(2);
      expect(await here.buyOnce(second, price, config)).toBe(true);
    });

    it("deposits of one payload at two processes are sent once, and both buy by it", async () => {
      const [first, second] = [await here.start(), await here.start()];
      const request = await sign();
      const outcomes = await Promise.all([
        deposit(here, first, request),
        deposit(here, second, request),
      ]);
      expect(outcomes).toMatchObject([{ state: "deposited" }, { state: "deposited" }]);
      expect(await channels.stateOf(config)).toMatchObject({ balance: amount });
      const { relayer } = here.devnet.accounts;
      const { client } = here.devnet;
      expect(await client.getTransactionCount({ address: relayer.address })).toBe(1);
      expect(await here.buyOnce(second, price, config)).toBe(true);
    });
  }

  it("are proven by the receipt of their transaction where no node returns their logs", async () => {
    const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) =>
      call.method === "eth_getLogs" ? { result: [] } : ask(),
    );
    onTestFinished(node.close);
    const facilitator = await here.start({}, { network: { rpcUrls: [node.url] } });
    expect(await deposit(here, facilitator, await sign())).toMatchObject({ state: "deposited" });
    expect(await here.buyOnce(facilitator, price, config)).toBe(true);
  });

  it("deposits of another sender end at last where no node returns their logs", async () => {
    let aheadMs = 0;
    const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) =>
      call.method === "eth_getLogs" ? { result: [] } : ask(),
    );
    onTestFinished(node.close);
    const facilitator = await here.start(
      {},
      { network: { rpcUrls: [node.url] }, now: () => Date.now() + aheadMs },
    );
    await here.devnet.client.setBalance({
      address: here.devnet.accounts.relayer.address,
      value: 0n,
    });
    const request = { ...(await sign({ salt })), timeoutMs: 1 };
    await vi.waitFor(async () => {
      expect(await present(facilitator, request)).toMatchObject({ state: "pending" });
    }, patience);
    await here.sendDepositFirst(config, {
      amount,
      data: await channels.signDeposit(config, amount, { salt }),
    });
    await here.devnet.mine(5);
    aheadMs = 600_000;
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await readRows()).toMatchObject([{ state: "failed" }]);
    }, patience);
    // The money is there: the same payload's voucher goes on by it.
    aheadMs = 0;
    expect(await deposit(here, facilitator, request)).toEqual({ state: "needless" });
  });
});
