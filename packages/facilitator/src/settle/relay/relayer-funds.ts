import { type Clock, type RpcCall, RpcClosedError, type RpcRequester } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import type { Address, Network } from "@coinslot/protocol";
import * as z from "zod";
import type { Logger } from "../../logger.ts";
import type { SettlementMetrics } from "../metrics.ts";
import type { SettlementEvent } from "../settlement-event.ts";

export interface RelayerFundsOptions {
  network: Network;
  rpc: RpcRequester;
  addresses: readonly Address[];
  /** In wei: below this a relayer is not trusted to pay for another transaction. */
  minimumBalance: bigint;
  /** In wei: below this the log warns operators. */
  warningBalance: bigint;
  /** Called with each balance that was read, in wei. */
  onBalance?: ((relayer: Address, balance: bigint) => void) | undefined;
  clock: Clock;
  logger: Logger;
  metrics: SettlementMetrics;
  emit: (event: SettlementEvent) => void;
}

/** Watches the gas money of a network's relayers. */
export interface RelayerFunds {
  /** True if new payments may be accepted, and until a balance is known. */
  suffice(): boolean;
  /** True if this relayer has gas money, as far as is known. */
  sufficeFor(relayer: Address): boolean;
  /** A relayer's balance in wei: the cached one where it is plenty for this cost, else read now. */
  balanceFor(relayer: Address, cost: bigint): Promise<bigint>;
  /** Resolves when the balances have been read once, or could not be. */
  whenRead: Promise<void>;
  /** Reads the balances now. */
  readNow(): void;
  stop(): Promise<void>;
}

type Level = "well" | "low" | "exhausted";

const balanceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);
const readMs = 15_000;
/** A cached balance of this many times the cost suffices: less is spent between two reads. */
const plenty = 100n;
/** Interval while money is missing, so that payments go on soon after a relayer is funded. */
const readMsWhenExhausted = 1_000;

/** Starts to watch relayers' balances. */
export function watchRelayerFunds(options: RelayerFundsOptions): RelayerFunds {
  const { network, rpc, addresses, minimumBalance, warningBalance } = options;
  const { clock, logger, metrics, emit } = options;
  const levels = new Map<Address, Level>();
  const balances = new Map<Address, bigint>();
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  let resolveRead: () => void = () => undefined;
  const looked = new Promise<void>((resolve) => {
    resolveRead = resolve;
  });

  const reading = createSingleFlight(async () => {
    cancelTimer?.();
    try {
      const outcomes = await rpc.requestMany(addresses.map(balanceCall));
      for (const [index, relayer] of addresses.entries()) {
        const outcome = outcomes[index];
        if (outcome?.ok) record(relayer, balanceSchema.parse(outcome.result));
      }
    } catch (error) {
      if (!(error instanceof RpcClosedError)) {
        logger.warn({ err: error, network }, "relayer balances could not be read");
      }
    }
    resolveRead();
    const delayMs = suffice() ? readMs : readMsWhenExhausted;
    if (!isStopped) cancelTimer = clock.setTimer(reading.trigger, delayMs);
  });
  reading.trigger();

  function record(relayer: Address, balance: bigint): void {
    const before = levels.get(relayer) ?? "well";
    const level = levelOf(balance);
    levels.set(relayer, level);
    balances.set(relayer, balance);
    options.onBalance?.(relayer, balance);
    metrics.relayerBalance.set({ network, relayer }, Number(balance));
    if (level === before) return;
    const fields = { network, relayer, balance: balance.toString() };
    switch (level) {
      case "well":
        logger.info(fields, "the relayer has gas money again");
        emit({ type: "relayer_funds_restored", network, relayer, balance });
        break;
      case "low":
        logger.warn(fields, "the relayer's gas money runs out: refill it");
        emit({ type: "relayer_funds_low", network, relayer, balance });
        break;
      case "exhausted":
        logger.error(
          fields,
          "the relayer has no gas money: new payments are refused until a refill",
        );
        emit({ type: "relayer_funds_exhausted", network, relayer, balance });
        break;
    }
  }

  function levelOf(balance: bigint): Level {
    if (balance < minimumBalance) return "exhausted";
    return balance < warningBalance ? "low" : "well";
  }

  function sufficeFor(relayer: Address): boolean {
    return levels.get(relayer) !== "exhausted";
  }

  function suffice(): boolean {
    return addresses.some(sufficeFor);
  }

  async function balanceFor(relayer: Address, cost: bigint): Promise<bigint> {
    const known = balances.get(relayer);
    if (known !== undefined && known >= plenty * cost) return known;
    const balance = balanceSchema.parse(await rpc.request(balanceCall(relayer)));
    record(relayer, balance);
    if (!suffice()) reading.trigger();
    return balance;
  }

  return {
    suffice,
    sufficeFor,
    balanceFor,
    whenRead: looked,
    readNow: reading.trigger,
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await reading.stop();
    },
  };
}

function balanceCall(address: Address): RpcCall {
  return { method: "eth_getBalance", params: [address, "latest"] };
}
