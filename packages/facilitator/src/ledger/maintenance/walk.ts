import { sortableIdAt } from "../sortable-id.ts";

/** One step of a walk over the oldest rows of a table, in the order of their ids. */
export interface WalkOptions {
  /** The id after which it goes on. Empty: from the beginning. */
  after: string;
  /** Unix milliseconds: rows created later are not read. */
  before: number;
  /** Number of rows read: few enough to delay no writer. */
  limit: number;
}

/** Result of one step of a walk. */
export interface WalkStep {
  /** Number of rows that the step has archived or deleted. */
  ended: number;
  /** Pass it as `after`; `undefined` at the end of the walk. */
  after: string | undefined;
  /** Ids in `sold_names` of the rows that it has read and kept. */
  keptNames: readonly number[];
}

/**
 * The rows of a step that are old enough. The statement reads the next ones by id, whatever their
 * age: PostgreSQL without statistics expects few rows between two ids, and would read all of them.
 */
export function oldAmong<Row extends { id: string }>(
  next: readonly Row[],
  { before }: WalkOptions,
): Row[] {
  const bound = sortableIdAt(before);
  return next.filter(({ id }) => id < bound);
}

/** The last id of a full step. One that is not full came to the end, or to young rows. */
export function nextAfter(
  rows: readonly { id: string }[],
  { limit }: WalkOptions,
): string | undefined {
  return rows.length < limit ? undefined : rows.at(-1)?.id;
}

/** The names of rows without those of `gone`. */
export function namesOfKept(
  rows: readonly ({ id: string } & NamedRow)[],
  gone: readonly { id: string }[],
): number[] {
  const ended = new Set(gone.map(({ id }) => id));
  return rows
    .filter(({ id }) => !ended.has(id))
    .flatMap(({ route_id, resource_id, pay_to_id }) => [route_id, resource_id, pay_to_id])
    .filter((id) => id !== null);
}

/** The columns that name sold things. */
export const nameColumns = ["route_id", "resource_id", "pay_to_id"] as const;

type NamedRow = Record<(typeof nameColumns)[number], number | null>;
