import {
  type CompiledQuery,
  type OperationNode,
  RawNode,
  ReferenceNode,
  SelectAllNode,
  SelectQueryNode,
} from "kysely";

/**
 * Returns whether a statement returns `*`. Its columns are then those of the schema when it runs,
 * not of the schema for which it was prepared. A statement that names its columns returns these, or
 * fails.
 */
export function selectsAll({ query, sql }: CompiledQuery): boolean {
  if (RawNode.is(query)) return sql.includes("*");
  if (SelectQueryNode.is(query)) return hasStar(query.selections);
  return "returning" in query && hasStar(query.returning?.selections);
}

function hasStar(selections: readonly { selection: OperationNode }[] = []): boolean {
  return selections.some(
    ({ selection }) =>
      SelectAllNode.is(selection) ||
      (ReferenceNode.is(selection) && SelectAllNode.is(selection.column)),
  );
}
