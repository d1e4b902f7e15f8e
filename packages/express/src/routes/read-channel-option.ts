import {
  type Address,
  channelScheme,
  isAmount,
  maxWithdrawDelay,
  minWithdrawDelay,
  toLowerHex,
} from "@coinslot/protocol";
import { isRecord } from "../is-record.ts";
import { readPayTo } from "./read-pay-to.ts";

/** Parsed settings of a way to pay by channels. */
export interface ChannelOptionTerms {
  /** Seconds. */
  withdrawDelay: number;
  /** In the token's smallest unit; `undefined`: ten times the price. */
  minDeposit: bigint | undefined;
  /** Earlier terms, whose channels are still served. Addresses in lower case. */
  former: readonly FormerTerms[];
}

interface FormerTerms {
  payTo?: Address | undefined;
  receiverAuthorizer?: Address | undefined;
  withdrawDelay?: number | undefined;
}

/** Members of a way to pay beside those of every scheme. */
export const channelMembers = new Set(["withdrawDelay", "minDeposit", "former"]);

const aDay = 86_400;
const maxFormer = 16;

/** Reads the settings of a way to pay by channels, and reports every problem. */
export function readChannelOption(
  option: Record<string, unknown>,
  tell: (problem: string) => void,
): ChannelOptionTerms {
  const { withdrawDelay = aDay, minDeposit, former = [], payTo } = option;
  if (typeof payTo === "function") {
    tell(`.payTo must be an address with the scheme "${channelScheme}": a channel is bound to it`);
  }
  const isDelay = isWithdrawDelay(withdrawDelay);
  if (!isDelay) tell(`.withdrawDelay ${delayWords}`);
  const isDeposit =
    minDeposit === undefined || (typeof minDeposit === "string" && isAmount(minDeposit));
  if (!isDeposit) {
    tell(".minDeposit must be a whole number of the token's smallest unit, as a decimal string");
  }
  const isList = Array.isArray(former) && former.length <= maxFormer;
  if (!isList) tell(`.former must be a list of at most ${maxFormer} earlier terms`);
  const entries: readonly unknown[] = isList ? former : [];
  return {
    withdrawDelay: isDelay ? withdrawDelay : aDay,
    minDeposit: isDeposit && minDeposit !== undefined ? BigInt(minDeposit) : undefined,
    former: entries.map((each, index) =>
      readFormer(each, (problem) => tell(`.former[${index}]${problem}`)),
    ),
  };
}

const delayWords = `must be a whole number of seconds from ${minWithdrawDelay} to ${maxWithdrawDelay}`;

function isWithdrawDelay(value: unknown): value is number {
  return (
    typeof value === "number" &&
    Number.isInteger(value) &&
    value >= minWithdrawDelay &&
    value <= maxWithdrawDelay
  );
}

const formerMembers = new Set(["payTo", "receiverAuthorizer", "withdrawDelay"]);

function readFormer(value: unknown, tell: (problem: string) => void): FormerTerms {
  if (!isRecord(value)) {
    tell(" must be an object");
    return {};
  }
  for (const name of Object.keys(value)) {
    if (!formerMembers.has(name)) tell(` has an unknown member: ${name}`);
  }
  const { payTo, receiverAuthorizer, withdrawDelay } = value;
  if (withdrawDelay !== undefined && !isWithdrawDelay(withdrawDelay)) {
    tell(`.withdrawDelay ${delayWords}`);
  }
  const addressOf = (name: string, address: unknown): Address | undefined => {
    if (address === undefined) return undefined;
    const read = readPayTo(address);
    if (read.ok) return toLowerHex(read.payTo);
    tell(`.${name} ${read.problem}`);
  };
  return {
    payTo: addressOf("payTo", payTo),
    receiverAuthorizer: addressOf("receiverAuthorizer", receiverAuthorizer),
    withdrawDelay: isWithdrawDelay(withdrawDelay) ? withdrawDelay : undefined,
  };
}
