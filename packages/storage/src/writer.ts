import { setImmediate as nextTurn } from "node:timers/promises";
import { CompiledQuery, type Transaction } from "kysely";
import type { Database } from "./database.ts";
import type { Durability } from "./durability.ts";

type Work<Schema, Result> = (transaction: Transaction<Schema>) => Promise<Result>;

/** Runs small pieces of work durably; see `createWriter`. */
export interface Writer<Schema> {
  /**
   * Runs `work` in a transaction and resolves with its result once that is committed, and, unless `durability` says
   * otherwise, on the disk. If `work` throws, its effects are undone, and nobody else's. It must await its own queries
   * and nothing else: others wait for it. The kinds of errors are those of `Database.transaction`.
   */
  write<Result>(
    work: Work<Schema, Result>,
    options?: { durability?: Durability | undefined },
  ): Promise<Result>;
}

/**
 * A writer for many small concurrent transactions.
 *
 * SQLite has one writer, and every commit costs it, so what comes while a commit runs is put together into the next
 * one, each piece in a savepoint; the next one begins while the disk takes the last one. PostgreSQL does that by
 * itself for commits of several connections; there each piece has a transaction of its own, since pieces put together
 * would hold each other's row locks, and the groups of two processes would lock each other out.
 */
export function createWriter<Schema>(database: Database<Schema>): Writer<Schema> {
  return database.engine === "sqlite"
    ? createGroupWriter(database)
    : { write: database.transaction };
}

/** One waiting piece of work. */
interface Piece<Schema> {
  durability: Durability | undefined;
  /** Returns what tells its caller once the commit is done. */
  run(transaction: Transaction<Schema>): Promise<() => void>;
  fail(error: unknown): void;
}

// Bounds the time for which readers of uncommitted work, the callers, have to wait.
const maxGroup = 256;

function createGroupWriter<Schema>({ transaction }: Database<Schema>): Writer<Schema> {
  let waiting: Piece<Schema>[] = [];
  let running = false;

  async function runAll(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      // Everything here is synchronous underneath: without this turn, no socket would be read between two groups,
      // and whoever is about to write in this turn of the event loop joins the group.
      await nextTurn();
      const group = waiting.slice(0, maxGroup);
      waiting = waiting.slice(maxGroup);
      await runGroup(group);
    }
    running = false;
  }

  /** Resolves once the group is committed, or has failed; whoever wants the disk as well is told later. */
  function runGroup(group: readonly Piece<Schema>[]): Promise<void> {
    const isForProcess = group.every(({ durability }) => durability === "process");
    return new Promise((resolve) => {
      const tellAtCommit: (() => void)[] = [];
      const tellAtEnd: (() => void)[] = [];
      const running = transaction(
        async (tx) => {
          for (const piece of group) {
            // Alone, the transaction is all that has to be undone.
            const tell = await (group.length === 1 ? piece.run(tx) : inSavepoint(tx, piece));
            if (piece.durability === "process") tellAtCommit.push(tell);
            else tellAtEnd.push(tell);
          }
        },
        {
          durability: isForProcess ? "process" : undefined,
          onCommit() {
            for (const tell of tellAtCommit) tell();
            resolve();
          },
        },
      );
      running
        .then(
          () => {
            for (const tell of tellAtEnd) tell();
          },
          (error: unknown) => {
            // Those that have been told already hear nothing of it.
            for (const piece of group) piece.fail(error);
          },
        )
        .finally(resolve);
    });
  }

  return {
    write: (work, { durability } = {}) =>
      new Promise((resolve, reject) => {
        waiting.push({
          durability,
          run: async (tx) => {
            const result = await work(tx);
            return () => resolve(result);
          },
          fail: reject,
        });
        if (!running) void runAll();
      }),
  };
}

const savepoint = CompiledQuery.raw("savepoint piece");
const release = CompiledQuery.raw("release piece");
const rollback = CompiledQuery.raw("rollback to piece");

/**
 * An error of a piece undoes the piece, and is told after the commit like a result: it may follow from what another
 * piece of the group has written. If the savepoint is gone, since SQLite ends the whole transaction when the disk is
 * full, the error is thrown, and fails the group.
 */
async function inSavepoint<Schema>(
  tx: Transaction<Schema>,
  piece: Piece<Schema>,
): Promise<() => void> {
  await tx.executeQuery(savepoint);
  let tell: () => void;
  try {
    tell = await piece.run(tx);
  } catch (error) {
    tell = () => piece.fail(error);
    await tx.executeQuery(rollback).catch(() => {
      throw error;
    });
  }
  await tx.executeQuery(release);
  return tell;
}
