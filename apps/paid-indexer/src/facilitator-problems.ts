/** The facilitator's names of settings, with this program's names for them. */
const subjects: readonly (readonly [pattern: RegExp, setting: string])[] = [
  [/^(?:the )?ledger/i, "COINSLOT_LEDGER"],
  [/: relayer\.seedPhrase/, "FACILITATOR_SEED_PHRASE"],
  [/: relayer\.privateKey/, "FACILITATOR_PRIVATE_KEY"],
  [/: relayer/, "FACILITATOR_SEED_PHRASE or FACILITATOR_PRIVATE_KEY"],
  [/RPC URL|rpcUrls|its URL/, "COINSLOT_RPC_URL"],
];

/** Rewrites a problem of the facilitator with the names of this program's settings. */
export function inOurWords(problem: string): string {
  const [, setting] = subjects.find(([pattern]) => pattern.test(problem)) ?? [];
  const words = problem
    .replace(/^networks\[0\]: /, "")
    .replace(/^(?:relayer|ledger|rpcUrls)(?:\.\w+)? /, "")
    .replace("rpcUrls", "COINSLOT_RPC_URL")
    .replace("correct network.", "correct COINSLOT_NETWORK.")
    .replace(/^The ledger cannot .*$/, "$&. Start or repair the database, or name another.");
  return setting === undefined ? words : `${setting}: ${words}`;
}
