import { withDatabase } from "@coinslot/devnet";
import { addressSchema, type ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listAuditOperation } from "../../audit/audit-operations.ts";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { runOperation } from "../../operators/run-operation.ts";
import { todayOperation } from "../../reads/today/today-operation.ts";
import {
  type ClaimingDevnet,
  patience,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";
import { channelTotalsOperation } from "./channel-totals-operation.ts";
import { claimChannelsOperation } from "./claim-channels-operation.ts";
import { getChannelOperation } from "./get-channel-operation.ts";
import { listChannelsOperation } from "./list-channels-operation.ts";
import { refundChannelOperation } from "./refund-channel-operation.ts";

describe.each(enginesByDay("sqlite"))("commands of the operator on channels, on %s", (engine) => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;

  beforeEach(async () => {
    here = await startClaimingDevnet(engine);
    channels = here.channels;
    config = channels.configOf();
  });

  afterEach(() => here.stop());

  /** Lists channels beside the ledger, and through the running seller. */
  const list = (show: "all" | "unclaimed" | "withdrawing" | "lost") =>
    runOperation(here.ledger.url, listChannelsOperation, { show });

  const claim = ({ operator }: CoinslotFacilitator, argument = {}) =>
    operator.run(claimChannelsOperation, argument);

  it("show what is locked, charged, unclaimed and at risk, and the next deadline", async () => {
    const facilitator = await here.start();
    const idle = channels.configOf();
    for (const each of [config, idle]) await channels.deposit(each, 10_000n);
    await here.buy(facilitator, 6_000n, config);
    await here.buy(facilitator, 2_000n, idle);
    const { channels: found } = await list("unclaimed");
    expect(found).toHaveLength(2);
    expect(found.find(({ id }) => id === channels.idOf(config))).toMatchObject({
      state: "open",
      payer: config.payer.toLowerCase(),
      charged: { value: "6000" },
      claimed: { value: "0" },
      unclaimed: { value: "6000" },
      atRisk: { value: "0" },
      locked: { value: "10000" },
      withdrawal: null,
    });
    expect(await list("withdrawing")).toEqual({ channels: [], nextCursor: null });
    await facilitator.close();
    await channels.withdraw(config, 10_000n);

    // It can claim nothing: its relayer may send no transaction.
    const poor = await here.start({}, { network: { fees: { maxFeePerGas: 1n } } });
    const withdrawing = await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const [one] = (await list("withdrawing")).channels;
      if (one === undefined) throw new Error("No withdrawal was seen.");
      return one;
    }, patience);
    expect(withdrawing).toMatchObject({ state: "withdrawing", atRisk: { value: "6000" } });
    const { totals } = await runOperation(here.ledger.url, channelTotalsOperation, {});
    await vi.waitFor(async () => {
      expect(await here.metric(poor, "coinslot_channels_locked")).toBe(20_000);
      expect(await here.metric(poor, "coinslot_channels_deadline_ratio")).toBeLessThanOrEqual(1);
      const name = "coinslot_channels_watched_timestamp_seconds";
      expect(await here.metric(poor, name)).toBeGreaterThan(0);
    }, patience);
    expect(totals).toMatchObject([
      {
        channels: 2,
        due: 2,
        charged: { value: "8000" },
        unclaimed: { value: "8000" },
        atRisk: { value: "6000" },
        locked: { value: "20000" },
        lost: { value: "0" },
        nextDeadline: withdrawing.withdrawal?.deadline,
        watched: { block: expect.any(Number) },
      },
    ]);

    // Two thirds of the delay pass, without a look at the chain.
    const attention = async () =>
      (await runOperation(here.ledger.url, todayOperation, {})).attention;
    expect(await attention()).toEqual([]);
    await poor.close();
    await withDatabase(here.ledger.url, async (database) => {
      await database.execute("update channel_states set withdraw_at = withdraw_at - 700");
      await database.execute("update channel_watches set block_time = block_time - 700");
    });
    expect((await attention()).slice(0, 2)).toMatchObject([
      { code: "channels_deadline", urgency: "critical", count: 1 },
      { code: "channels_unwatched", urgency: "critical", count: 2 },
    ]);

    // As a node's false block leaves it.
    await withDatabase(here.ledger.url, async ({ execute }) => {
      await execute(`update channel_watches set block_time = ${0xfffffffffffff}`);
      await execute(`update channel_states set withdraw_at = ${0xfffffffffffff}
        where withdraw_at is not null`);
    });
    const { totals: far } = await runOperation(here.ledger.url, channelTotalsOperation, {});
    const end = "+275760-09-13T00:00:00.000Z";
    expect(far).toMatchObject([{ watched: { at: end }, nextDeadline: end }]);
    expect((await list("withdrawing")).channels).toMatchObject([{ withdrawal: { deadline: end } }]);
  });

  it("claim once what is unclaimed, with an entry in the audit log", async () => {
    const first = await here.start();
    const other = channels.configOf();
    for (const each of [config, other]) await channels.deposit(each, 10_000n);
    await here.buy(first, 6_000n, config);
    await here.buy(first, 4_000n, other);
    // Its delivery marks are written: no charge may be lowered any more.
    await first.close();
    const facilitator = await here.start();
    const { network } = here.devnet;
    const one = await claim(facilitator, { channel: channels.idOf(config) });
    expect(one.claims).toMatchObject([{ network, sent: 1, amounts: [{ value: "6000" }] }]);
    const rest = await claim(facilitator);
    expect(rest.claims).toMatchObject([{ sent: 1, amounts: [{ value: "4000" }], waiting: null }]);
    expect(await claim(facilitator)).toMatchObject({ claims: [{ sent: 0, refused: [] }] });
    await here.claimed(6_000n, config);
    await here.claimed(4_000n, other);
    await here.drained(facilitator);
    expect(await list("unclaimed")).toMatchObject({ channels: [] });

    const { entries } = await facilitator.operator.run(listAuditOperation, {
      operation: "channels.claim",
    });
    expect(new Set(entries.map(({ outcome }) => outcome))).toContain("done");
    const id = channels.idOf(config).slice(0, 14);
    // Nothing is unclaimed at the head; the claim is done once that is final.
    const shown = await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const found = await runOperation(here.ledger.url, getChannelOperation, { id });
      expect(found.steps).toMatchObject([{ state: "done" }]);
      return found;
    }, patience);
    expect(shown).toMatchObject({
      channel: { claimed: { value: "6000" }, unclaimed: { value: "0" } },
      steps: [{ kind: "claim", state: "done", amount: { value: "6000" } }],
      days: [{ charges: 3, charged: { value: "6000" } }],
    });
    expect(shown.steps[0]?.transaction).toMatch(/^0x[0-9a-f]{64}$/);
  });

  it("give back once what was not charged, beyond the limits of buyers, with an entry in the audit log", async () => {
    const first = await here.start();
    await channels.deposit(config, 10_000n);
    await here.buy(first, 6_000n, config);
    // Its delivery marks are written: no charge may be lowered any more.
    await first.close();
    const facilitator = await here.start({ maxRefundsPerSigner: 1 });
    const { network } = here.devnet;
    const argument = { network, channel: channels.idOf(config), amount: "1000" };
    const refund = (idempotencyKey: string, more = {}) =>
      facilitator.operator.run(refundChannelOperation, { ...argument, idempotencyKey, ...more });
    const done = (idempotencyKey: string, more = {}) =>
      vi.waitFor(async () => {
        await here.devnet.mine(1);
        const refunded = await refund(idempotencyKey, more);
        expect(refunded).toMatchObject({
          state: "done",
          id: expect.stringContaining(idempotencyKey),
        });
        return refunded;
      }, patience);
    expect(await done("one")).toMatchObject({ amount: "1000" });
    expect(await refund("one")).toMatchObject({ state: "done", amount: "1000" });
    expect(await done("two")).toMatchObject({ amount: "1000" });
    expect(await done("rest", { amount: undefined })).toMatchObject({ amount: "2000" });
    expect(await channels.stateOf(config)).toMatchObject({
      balance: 6_000n,
      totalClaimed: 6_000n,
      refundNonce: 3n,
    });
    await expect(refund("more")).rejects.toMatchObject({ code: "nothing_to_refund" });
    await expect(refund("other", { network: "eip155:1" })).rejects.toMatchObject({
      code: "no_channels",
    });
    await expect(refund("unknown", { channel: `0x${"12".repeat(32)}` })).rejects.toMatchObject({
      code: "unknown_channel",
    });
    const { entries } = await facilitator.operator.run(listAuditOperation, {
      operation: "channels.refund",
    });
    expect(new Set(entries.map(({ outcome }) => outcome))).toContain("done");
  });

  it("give nothing back beside a refund that runs: the same question later is another refund", async () => {
    await channels.deposit(config, 10_000n);
    const facilitator = await here.start();
    await here.admit(facilitator, 2_000n, config).then(async (admission) => {
      if (admission.state !== "admitted") throw new Error(admission.state);
      await admission.run.drop({ isFree: false });
    });
    await here.devnet.setAutomine(false);
    const { network } = here.devnet;
    const refund = (idempotencyKey: string) =>
      facilitator.operator.run(refundChannelOperation, {
        network,
        channel: channels.idOf(config),
        amount: "6000",
        idempotencyKey,
      });
    const first = await refund("one");
    await expect(refund("two")).rejects.toMatchObject({
      code: "refund_running",
      message: expect.stringContaining(first.id),
    });
    expect(await refund("one")).toMatchObject({ id: first.id });
  });

  it("refuse what no seller serves, and what is no channel", async () => {
    const facilitator = await here.start();
    await expect(claim(facilitator, { network: "eip155:1" })).rejects.toMatchObject({
      code: "no_channels",
    });
    await expect(claim(facilitator, { channel: "0x12" })).rejects.toMatchObject({
      code: "malformed",
    });
    const show = (id: string) => runOperation(here.ledger.url, getChannelOperation, { id });
    await expect(show("0x123456")).rejects.toMatchObject({ code: "unknown_channel" });
    const page = { cursor: "eip155:1/0x12/0x34" };
    await expect(facilitator.operator.run(listChannelsOperation, page)).rejects.toMatchObject({
      code: "malformed",
    });
  });

  it("page through all channels by their ids", async () => {
    const facilitator = await here.start();
    const configs = [config, channels.configOf(), channels.configOf()];
    for (const each of configs) {
      await channels.deposit(each, 10_000n);
      await here.buy(facilitator, 2_000n, each);
    }
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await runOperation(here.ledger.url, listChannelsOperation, { limit: 1, cursor });
      found.push(...page.channels.map(({ id }) => id));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(found).toEqual(configs.map((each) => channels.idOf(each)).sort());
  });

  it("name a row that the escrow refuses, until it is claimed", async () => {
    await channels.deposit(config, 10_000n);
    const first = await here.start();
    await here.buy(first, 6_000n, config);
    await first.close();
    const facilitator = await here.start();
    // The escrow reverts each claim, as long as its code is another one.
    const { contract } = (await list("unclaimed")).channels[0] ?? {};
    if (contract === undefined) throw new Error("No channel is unclaimed.");
    const address = addressSchema.parse(contract);
    const code = await here.devnet.client.getCode({ address });
    // PUSH1 0 PUSH1 0 REVERT
    await here.devnet.client.setCode({ address, bytecode: "0x60006000fd" });
    const failed = await claim(facilitator).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      claims: [{ sent: 0, refused: [{ channel: channels.idOf(config) }] }],
    });
    // It is measured by the process that has the lease of claims.
    await expect.poll(() => here.metric(facilitator, "coinslot_channels_refused")).toBe(1);
    await facilitator.close();
    await here.devnet.client.setCode({ address, bytecode: code ?? "0x" });
    // By any process, also once the one that tried it has ended.
    const [refused] = (await list("unclaimed")).channels;
    expect(refused?.refusal?.error).toBeTypeOf("string");
    const id = channels.idOf(config);
    const shown = await runOperation(here.ledger.url, getChannelOperation, { id });
    expect(shown.channel.refusal).toEqual(refused?.refusal);
    const totals = await runOperation(here.ledger.url, channelTotalsOperation, {});
    expect(totals).toMatchObject({ totals: [{ refused: 1 }] });
    const { attention } = await runOperation(here.ledger.url, todayOperation, {});
    expect(attention).toMatchObject([{ code: "channels_refused", count: 1 }]);
    const next = await here.start();
    await claim(next);
    const { channel } = await runOperation(here.ledger.url, getChannelOperation, { id });
    expect(channel.refusal).toBeNull();
    await here.claimed(6_000n, config);
    await here.drained(next);
    expect(await here.metric(next, "coinslot_channels_refused")).toBe(0);
  });

  it("are followed by a close that claims what is unclaimed, for a time", async () => {
    await channels.deposit(config, 10_000n);
    const facilitator = await here.start({ claimAtCloseSeconds: 60 });
    await here.buy(facilitator, 6_000n, config);
    const closing = facilitator.close();
    await here.claimed(6_000n, config);
    await closing;

    const hasty = await here.start({ claimAtCloseSeconds: 0.5 });
    await here.buy(hasty, 8_000n, config);
    await here.devnet.client.setAutomine(false);
    await hasty.close();
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 6_000n });
    await here.devnet.client.setAutomine(true);
    await here.start();
    await here.claimed(8_000n, config);
  });
});
