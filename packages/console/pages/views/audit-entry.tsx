import { formatTime } from "@coinslot/pages/format";
import type { ComponentChildren } from "preact";
import type { AuditRow } from "../api/operations.ts";
import { Json } from "../parts/json.tsx";
import { Facts } from "../parts/page.tsx";

/** All of an entry. */
export function AuditEntry({ entry }: { entry: AuditRow }) {
  const { operation, argument, result } = entry;
  return (
    <>
      <Facts facts={factsOf(entry)} />
      {isShown(argument) && <Json value={argument} what={`Argument of ${operation}`} />}
      {isShown(result) && <Json value={result} what={`Result of ${operation}`} />}
    </>
  );
}

function factsOf(entry: AuditRow): readonly (readonly [string, ComponentChildren])[] {
  const { at, account, actor, via, isRecorded, subject, idempotencyKey, code, message } = entry;
  const facts: readonly (readonly [string, string | null])[] = [
    ["Time", formatTime(at)],
    ["Account", account],
    ["Caller", `${actor}, by ${via}`],
    ["Words", isRecorded ? "of the caller" : null],
    ["On", subject],
    ["Key", idempotencyKey],
    ["Code", code],
    ["Message", message],
  ];
  return facts.filter(([, value]) => value !== null);
}

/** An empty argument says nothing. */
function isShown(value: unknown): boolean {
  return typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : value !== null && value !== undefined;
}
