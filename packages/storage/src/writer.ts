import { setImmediate as nextTurn } from "node:timers/promises";
import { CompiledQuery, type Transaction } from "kysely";
import type { Database } from "./database.ts";
import type { Durability } from "./durability.ts";

type Work<Schema, Result> = (transaction: Transaction<Schema>) => Promise<Result>;

/** Runs small pieces of work durably; see `createWriter`. */
export interface Writer<Schema> {
  /**
   * Runs `work` in a transaction. Resolves with its result once that is committed, and, unless
   * `durability` says otherwise, on the disk. If `work` throws, only its own effects are undone. It
   * must await its own queries and nothing else, since others wait for it. The kinds of errors are
   * those of `Database.transaction`.
   */
  write<Result>(
    work: Work<Schema, Result>,
    options?: { durability?: Durability | undefined },
  ): Promise<Result>;
}

/**
 * Group commit: a writer for many small concurrent transactions.
 *
 * SQLite has one writer, and every commit costs it. Pieces that arrive during a commit join the
 * next one, each in a savepoint. The next one begins while the disk takes the last one. PostgreSQL
 * groups the commits of several connections itself. There each piece has a transaction of its own.
 * Grouped pieces would hold each other's row locks, and the groups of two processes would deadlock.
 *
 * No batcher of `@coinslot/concurrency`. A piece has its result at the commit or at the disk, by
 * its durability. The next group begins in between.
 */
export function createWriter<Schema>(database: Database<Schema>): Writer<Schema> {
  return database.engine === "sqlite"
    ? createGroupWriter(database)
    : { write: database.transaction };
}

/** One waiting piece of work. */
interface Piece<Schema> {
  durability: Durability | undefined;
  /** Returns the function that reports to its caller after the commit. */
  run(transaction: Transaction<Schema>): Promise<() => void>;
  fail(error: unknown): void;
}

// Bounds the wait of readers of uncommitted work, the callers.
const maxGroup = 256;

function createGroupWriter<Schema>({ transaction }: Database<Schema>): Writer<Schema> {
  let waiting: Piece<Schema>[] = [];
  let running = false;

  async function runAll(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      // All work below is synchronous underneath: without this turn, no socket would be read
      // between two groups. Writers of the same turn of the event loop join the group.
      await nextTurn();
      const group = waiting.slice(0, maxGroup);
      waiting = waiting.slice(maxGroup);
      await runGroup(group);
    }
    running = false;
  }

  /** Resolves once the group is committed, or has failed; waits for the disk follow. */
  function runGroup(group: readonly Piece<Schema>[]): Promise<void> {
    const isForProcess = group.every(({ durability }) => durability === "process");
    return new Promise((resolve) => {
      const tellAtCommit: (() => void)[] = [];
      const tellAtEnd: (() => void)[] = [];
      const running = transaction(
        async (tx) => {
          for (const piece of group) {
            // A single piece needs no savepoint: undoing the transaction undoes it.
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
            // Has no effect on callers that already have their result.
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
 * Runs a piece in a savepoint, which its error undoes. The error is reported after the commit like
 * a result, since it may follow from the writes of another piece. SQLite ends the whole
 * transaction, and the savepoint with it, when the disk is full. The error is then thrown, and
 * fails the group.
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
