import {
  type Clock,
  type RpcCall,
  RpcClosedError,
  type RpcPool,
  type RpcRequester,
} from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import { type Address, isSameAddress, type Network } from "@coinslot/protocol";
import * as z from "zod";
import type { Logger } from "../../logger.ts";
import type { SettlementMetrics } from "../metrics.ts";
import type { SettlementEvent } from "../settlement-event.ts";
import { largest } from "./largest.ts";

export interface RelayerFundsOptions {
  network: Network;
  rpc: RpcRequester & Pick<RpcPool, "endpoints">;
  addresses: readonly Address[];
  /** In wei: below this a relayer is not trusted to pay for another transaction. */
  minimumBalance: bigint;
  /** In wei: below this the log warns operators. */
  warningBalance: bigint;
  /** Called with each balance that is known, in wei. */
  onBalance?: ((relayer: Address, balance: bigint) => void) | undefined;
  /** Called with the balances that were read here, and not by another process. */
  onRead?: ((balances: readonly RelayerBalance[]) => void) | undefined;
  /** True if this process reads the balances for all that share the ledger. */
  isReader: () => boolean;
  /** Interval between two reads while there is gas money. */
  readMs: number;
  clock: Clock;
  logger: Logger;
  metrics: SettlementMetrics;
  emit: (event: SettlementEvent) => void;
}

export interface RelayerBalance {
  relayer: Address;
  /** In wei. */
  balance: bigint;
}

/** Watches the gas money of a network's relayers. */
export interface RelayerFunds {
  /** True if new payments may be accepted, and until a balance is known. */
  suffice(): boolean;
  /** True if this relayer has gas money, as far as is known. */
  sufficeFor(relayer: Address): boolean;
  /**
   * Records that a relayer cannot pay for a single payment, whatever the configured minimum is: it
   * has no gas money until its balance grows, or for a while. Gas may be cheaper then.
   */
  cannotPay(relayer: Address): void;
  /** A relayer's balance in wei: the cached one where it is plenty for this cost, else read now. */
  balanceFor(relayer: Address, cost: bigint): Promise<bigint>;
  /** The largest balance that any endpoint shows, in wei; 0 where there is one endpoint. */
  largestBalance(relayer: Address): Promise<bigint>;
  /** The known balances, in wei. */
  balances(): ReadonlyMap<Address, bigint>;
  /** Resolves when the balances have been read once, or could not be. */
  whenRead: Promise<void>;
  /** Reads the balances now. */
  readNow(): void;
  /** Takes over balances that another process has read. */
  learn(balances: readonly RelayerBalance[]): void;
  stop(): Promise<void>;
}

type Level = "well" | "low" | "exhausted";

const balanceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);
/** Time of an endpoint where all are asked. */
const eachMs = 5_000;
/** A cached balance of this many times the cost suffices: less is spent between two reads. */
const plenty = 100n;
/** Transactions after which a balance is read again, however recent it is. */
const maxUses = 50;
/** First interval while money is missing, so that payments go on soon after a relayer is funded. */
const readMsWhenExhausted = 1_000;
/** It doubles up to this. */
const maxReadMsWhenExhausted = 15_000;

/** Starts to watch relayers' balances. */
export function watchRelayerFunds(options: RelayerFundsOptions): RelayerFunds {
  const { network, rpc, addresses, minimumBalance, warningBalance, readMs } = options;
  const { clock, logger, metrics } = options;
  const levels = new Map<Address, Level>();
  const balances = new Map<Address, { balance: bigint; at: number; uses: number }>();
  /**
   * The balance with which a relayer could not pay for a single payment, and until when it counts.
   */
  const tooLow = new Map<Address, { balance: bigint; until: number }>();
  let pauseMs = readMsWhenExhausted;
  let isForced = true;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  let resolveRead: () => void = () => undefined;
  const looked = new Promise<void>((resolve) => {
    resolveRead = resolve;
  });

  const reading = createSingleFlight(async () => {
    cancelTimer?.();
    try {
      await readDue();
    } catch (error) {
      if (!(error instanceof RpcClosedError)) {
        logger.warn({ err: error, network }, "relayer balances could not be read");
      }
    }
    resolveRead();
    if (!isStopped) cancelTimer = clock.setTimer(reading.trigger, nextDelayMs());
  });
  reading.trigger();

  /** Reads all at the reader; elsewhere those that it has not been notified of for too long. */
  async function readDue(): Promise<void> {
    const isAll = isForced || options.isReader();
    isForced = false;
    const oldest = clock.now() - (suffice() ? readMs : pauseMs) * 1.5;
    const due = addresses.filter((each) => isAll || (balances.get(each)?.at ?? 0) < oldest);
    if (due.length === 0) return;
    const outcomes = await rpc.requestMany(due.map(balanceCall));
    const read = due.flatMap((relayer, index) => {
      const outcome = outcomes[index];
      return outcome?.ok ? [{ relayer, balance: balanceSchema.parse(outcome.result) }] : [];
    });
    for (const { relayer, balance } of read) record(relayer, balance);
    options.onRead?.(read);
  }

  function nextDelayMs(): number {
    pauseMs = suffice() ? readMsWhenExhausted : Math.min(2 * pauseMs, maxReadMsWhenExhausted);
    return suffice() ? readMs : pauseMs / 2;
  }

  function record(relayer: Address, balance: bigint): void {
    const before = levels.get(relayer) ?? "well";
    const level = levelOf(balance);
    levels.set(relayer, level);
    if (balance > (tooLow.get(relayer)?.balance ?? balance)) tooLow.delete(relayer);
    balances.set(relayer, { balance, at: clock.now(), uses: 0 });
    options.onBalance?.(relayer, balance);
    metrics.relayerBalance.set({ network, relayer }, Number(balance));
    if (level !== before) announce(options, { relayer, balance, level });
  }

  function levelOf(balance: bigint): Level {
    if (balance < minimumBalance) return "exhausted";
    return balance < warningBalance ? "low" : "well";
  }

  /** New payments are refused by the configured minimum alone: gas may be cheaper by then. */
  function suffice(): boolean {
    return addresses.some((relayer) => levels.get(relayer) !== "exhausted");
  }

  async function balanceFor(relayer: Address, cost: bigint): Promise<bigint> {
    const known = balances.get(relayer);
    if (known !== undefined && known.balance >= plenty * cost && known.uses < maxUses) {
      known.uses += 1;
      return known.balance;
    }
    const balance = balanceSchema.parse(await rpc.request(balanceCall(relayer)));
    record(relayer, balance);
    options.onRead?.([{ relayer, balance }]);
    if (!suffice()) readNow();
    return balance;
  }

  function readNow(): void {
    isForced = true;
    reading.trigger();
  }

  return {
    suffice,
    sufficeFor(relayer) {
      const isTooLow = (tooLow.get(relayer)?.until ?? 0) > clock.now();
      return levels.get(relayer) !== "exhausted" && !isTooLow;
    },
    cannotPay(relayer) {
      const { balance = 0n } = balances.get(relayer) ?? {};
      tooLow.set(relayer, { balance, until: clock.now() + maxReadMsWhenExhausted });
    },
    balanceFor,
    largestBalance: (relayer) => readLargest(rpc.endpoints, relayer),
    balances: () => new Map([...balances].map(([relayer, { balance }]) => [relayer, balance])),
    whenRead: looked,
    readNow,
    learn(known) {
      for (const { relayer, balance } of known) {
        const own = addresses.find((each) => isSameAddress(each, relayer));
        if (own !== undefined) record(own, balance);
      }
    },
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await reading.stop();
    },
  };
}

/** Logs and emits a relayer's new level. */
function announce(
  { network, logger, emit }: RelayerFundsOptions,
  { relayer, balance, level }: RelayerBalance & { level: Level },
): void {
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
      logger.error(fields, "the relayer has no gas money: new payments are refused until a refill");
      emit({ type: "relayer_funds_exhausted", network, relayer, balance });
      break;
  }
}

/** One endpoint has been asked before: others may contradict it. */
async function readLargest(endpoints: readonly RpcRequester[], relayer: Address): Promise<bigint> {
  if (endpoints.length < 2) return 0n;
  const signal = AbortSignal.timeout(eachMs);
  const shown = await Promise.all(
    endpoints.map(async (endpoint) => {
      const asked = endpoint.request(balanceCall(relayer), { signal });
      return balanceSchema.safeParse(await asked.catch(() => undefined)).data ?? 0n;
    }),
  );
  return largest(shown);
}

function balanceCall(address: Address): RpcCall {
  return { method: "eth_getBalance", params: [address, "latest"] };
}
