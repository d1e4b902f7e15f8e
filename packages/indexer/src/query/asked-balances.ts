import type { BalanceQuestion, KnownBalance } from "./known-balance.ts";

/**
 * Known balances at the time of a question to the chain. In memory only: the end of the process
 * forgets them.
 */
export interface AskedBalances {
  /** Takes the entry of a token and address, at an older block than this one. */
  takeOlder(question: BalanceQuestion, than: KnownBalance): AskedBalance | undefined;
  note(question: BalanceQuestion, known: AskedBalance): void;
}

export type AskedBalance = KnownBalance & { block: NonNullable<KnownBalance["block"]> };

/** Bound of remembered balances: callers choose the addresses. */
const maxAsked = 10_000;

export function createAskedBalances(): AskedBalances {
  const asked = new Map<string, AskedBalance>();
  const keyOf = ({ token, address }: BalanceQuestion) => `${token.id} ${address}`;
  return {
    takeOlder(question, { block, revision }) {
      const before = asked.get(keyOf(question));
      if (before === undefined || block === undefined || block.number <= before.block.number)
        return undefined;
      asked.delete(keyOf(question));
      return before.revision === revision ? before : undefined;
    },
    note(question, known) {
      const [oldest] = asked.keys();
      if (oldest !== undefined && asked.size >= maxAsked) asked.delete(oldest);
      asked.set(keyOf(question), known);
    },
  };
}
