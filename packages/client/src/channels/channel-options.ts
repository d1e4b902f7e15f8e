import { parseMoney } from "@coinslot/protocol";
import { type BudgetBucket, showInBucket } from "../budget/spending-policy.ts";
import { type ChannelStore, openChannelStore } from "./channel-store.ts";
import { createLanes, type Lanes } from "./lanes.ts";

/**
 * Payment channels (`batch-settlement`): one deposit, then a signed voucher for each request
 * instead of a transfer.
 */
export interface ChannelOptions {
  /**
   * A file that keeps channels and ceilings, for all processes of this payer on this machine. A
   * database of SQLite: Node has it from 22.13 on, older versions need `@photostructure/sqlite`.
   */
  file: string;
  /** Channels with one seller, for as many parallel requests. Each has a deposit. Default 1. */
  lanes?: number | undefined;
  /**
   * Limits of money in escrow that is not charged yet, in dollars. It is not spent: it comes back
   * by a refund or a withdrawal. A token with limits of its own has `limits.locked`.
   */
  locked?:
    | {
        /** Default `"$1"`. */
        perHost?: string | undefined;
        /** Default `"$5"`. */
        inAll?: string | undefined;
      }
    | undefined;
  /**
   * Pays the first purchase at an origin by `exact`, where that is offered. Money goes into escrow
   * from the second one on. Default `true`.
   */
  exactFirst?: boolean | undefined;
  /**
   * Longest `withdrawDelay` of a seller: the time for which a silent seller holds the money.
   * Default 604 800, a week.
   */
  maxWithdrawDelaySeconds?: number | undefined;
}

/** Limits of money in escrow, in the unit of a bucket. */
export interface LockedLimits {
  perHost: bigint;
  inAll: bigint;
}

/** The options of channels, read and checked, with their store. */
export interface ChannelContext {
  lanes: number;
  exactFirst: boolean;
  maxWithdrawDelaySeconds: number;
  limitsOf(pot: BudgetBucket): LockedLimits;
  /** Opens the store on its first use. */
  open(): Promise<{ store: ChannelStore; locks: Lanes }>;
}

const maxLanes = 64;
const dollarDecimals = 18;

/** Reads the options, and adds their faults to `problems`. Opens no file. */
export function readChannelOptions(options: ChannelOptions, problems: string[]): ChannelContext {
  const { file, lanes = 1, locked = {}, exactFirst = true } = options;
  const { maxWithdrawDelaySeconds = 604_800 } = options;
  if (typeof file !== "string" || file === "") problems.push("channels.file names no file");
  if (!Number.isInteger(lanes) || lanes < 1 || lanes > maxLanes) {
    problems.push(`channels.lanes is not an integer from 1 to ${maxLanes}`);
  }
  if (!Number.isSafeInteger(maxWithdrawDelaySeconds) || maxWithdrawDelaySeconds <= 0) {
    problems.push("channels.maxWithdrawDelaySeconds is not a positive integer");
  }
  const read = (key: "perHost" | "inAll"): bigint | undefined => {
    const text = locked[key];
    if (text === undefined) return undefined;
    const amount = text.startsWith("$") ? parseMoney(text, dollarDecimals) : undefined;
    if (amount === undefined) {
      problems.push(`channels.locked.${key} is not an amount such as "$0.10"`);
    }
    return amount;
  };
  const dollar = 10n ** BigInt(dollarDecimals);
  const inAll = read("inAll") ?? 5n * dollar;
  const perHost = read("perHost") ?? (inAll < dollar ? inAll : dollar);
  if (perHost > inAll) {
    const show = (amount: bigint) =>
      showInBucket({ name: "usd", decimals: dollarDecimals, limits: noLimits }, amount);
    problems.push(`channels.locked.perHost ${show(perHost)} is above inAll ${show(inAll)}`);
  }
  let opened: Promise<{ store: ChannelStore; locks: Lanes }> | undefined;
  return {
    lanes,
    exactFirst,
    maxWithdrawDelaySeconds,
    limitsOf: ({ name, limits }) =>
      name === "usd"
        ? { perHost, inAll }
        : (limits.locked ?? { perHost: limits.perHost, inAll: limits.perDay }),
    open() {
      opened ??= openChannelStore(file).then(
        (store) => ({ store, locks: createLanes(`${store.path}.locks`) }),
        (error: unknown) => {
          // The next purchase tries again.
          opened = undefined;
          throw error;
        },
      );
      return opened;
    },
  };
}

const noLimits = { perPayment: 0n, perHost: 0n, perDay: 0n };
