import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { describeIndexerFault, readIndexerDatabaseUrl } from "@coinslot/hosting";
import {
  type DeadIndexerWebhook,
  type IndexerSchema,
  type IndexerWebhook,
  IndexerWebhookError,
  type IndexerWebhooks,
  indexerWebhooks,
} from "@coinslot/indexer";
import { databaseFileOf, isDatabaseError, openDatabase } from "@coinslot/storage";
import { UsageError } from "../exit-code.ts";
import { showUnsafe } from "../safe-text.ts";
import { formatTable, paint, type Terminal } from "../terminal.ts";

/** Work of one command on the webhooks of a database. */
export type IndexerWebhooksTask = (
  webhooks: IndexerWebhooks,
  help: {
    /** The receiver that is named, or the only one. @throws UsageError */
    receiver(): Promise<string>;
    /** The lines of a file. */
    readAddresses(file: string | undefined): Promise<string[]>;
    showReceivers(receivers: readonly IndexerWebhook[]): void;
    showDead(dead: readonly DeadIndexerWebhook[]): void;
  },
) => Promise<void>;

/**
 * Opens the database of the service, which may run meanwhile, for one command.
 *
 * @throws UsageError
 */
export async function runIndexerWebhooks(
  options: {
    terminal: Terminal;
    file: string | undefined;
    receiver: string | undefined;
    /** True for a task that changes nothing. */
    readOnly: boolean;
  },
  task: IndexerWebhooksTask,
): Promise<void> {
  const { terminal, file, receiver, readOnly } = options;
  const url = readIndexerDatabaseUrl({ env: terminal.env, file });
  const path = databaseFileOf(url);
  if (path !== undefined && !existsSync(path))
    throw new UsageError(
      `The database ${path} does not exist yet: the service creates it. Does INDEXER_DATABASE name your service's?`,
    );
  try {
    const database = await openDatabase<IndexerSchema>({ url, readOnly });
    try {
      const webhooks = indexerWebhooks(database, { readOnly });
      await task(webhooks, {
        receiver: async () => receiver ?? (await onlyOne(webhooks)),
        readAddresses,
        showReceivers: (receivers) => showReceivers(terminal, receivers),
        showDead: (dead) => showDead(terminal, dead),
      });
    } finally {
      await database.close();
    }
  } catch (error) {
    if (error instanceof IndexerWebhookError) throw new UsageError(error.message, { cause: error });
    if (!isDatabaseError(error)) throw error;
    throw new Error(describeIndexerFault(error), { cause: error });
  }
}

async function onlyOne(webhooks: IndexerWebhooks): Promise<string> {
  const enabled = (await webhooks.list()).filter(({ isEnabled }) => isEnabled);
  const [first, ...others] = enabled;
  if (first === undefined)
    throw new UsageError(
      "This database has no receiver: set INDEXER_WEBHOOK_URL and INDEXER_WEBHOOK_SECRET, and start the service.",
    );
  if (others.length === 0) return first.id;
  const ids = enabled.map(({ id }) => id).join(", ");
  throw new UsageError(`Name one of ${ids} by --receiver.`);
}

async function readAddresses(file: string | undefined): Promise<string[]> {
  if (file === undefined) return [];
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new UsageError(`${file} cannot be read`, { cause: error });
  });
  return text.split("\n").flatMap((line) => line.trim() || []);
}

function showReceivers(terminal: Terminal, receivers: readonly IndexerWebhook[]): void {
  if (receivers.length === 0) {
    terminal.err("This database has no receivers.");
    return;
  }
  terminal.out(
    formatTable(terminal, [
      ["id", "url", "addresses", "pending", "oldest", "dead", "secrets"],
      ...receivers.map((each) => [
        each.id,
        showUnsafe(each.url) + (each.isEnabled ? "" : paint(terminal, "dim", " (ended)")),
        String(each.watched),
        String(each.pending),
        each.oldestPendingMs === undefined ? "" : `${Math.round(each.oldestPendingMs / 1_000)} s`,
        each.dead === 0 ? "0" : paint(terminal, "red", String(each.dead)),
        each.secrets.join(" "),
      ]),
    ]),
  );
}

function showDead(terminal: Terminal, dead: readonly DeadIndexerWebhook[]): void {
  if (dead.length === 0) {
    terminal.err("No event is dead.");
    return;
  }
  terminal.out(
    formatTable(terminal, [
      ["time (UTC)", "event", "type", "attempts", "error", "receiver"],
      ...dead.map(({ createdAt, id, type, attempts, error, endpoint }) => [
        new Date(createdAt).toISOString().slice(0, 19).replace("T", " "),
        id,
        type,
        String(attempts),
        showUnsafe(error),
        endpoint,
      ]),
    ]),
  );
  terminal.err("coinslot indexer webhooks replay --dead delivers them again.");
}
