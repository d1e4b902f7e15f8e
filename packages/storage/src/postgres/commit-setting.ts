import { CompiledQuery } from "kysely";

/**
 * A setting for the end of its transaction: it passes through Kysely to the driver like any other
 * query. The driver sends it together with the commit, so that it costs no round trip of its own.
 */
interface CommitSetting extends CompiledQuery {
  readonly isForCommit: true;
}

/** @param text `set local …`, without parameters. */
export function commitSetting(text: string): CommitSetting {
  return { ...CompiledQuery.raw(text), isForCommit: true };
}

export function isCommitSetting(query: CompiledQuery): query is CommitSetting {
  return "isForCommit" in query;
}
