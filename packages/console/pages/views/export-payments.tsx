import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/api-error.ts";
import type { PaymentRow } from "../api/operations.ts";
import { read } from "../api/use-operation.ts";
import { toCsv } from "../parts/to-csv.ts";
import type { Filters } from "./payment-filters.tsx";

const columns = [
  ...[
    "createdAt",
    "id",
    "state",
    "amount",
    "symbol",
    "value",
    "network",
    "asset",
    "payer",
    "payTo",
  ],
  ...["route", "resource", "wire", "nonce", "transaction", "block", "reason"],
  ...["confirmedAt", "finalAt", "deliveredAt", "refundedAt"],
] as const satisfies readonly (keyof PaymentRow)[];

/** Downloads all payments that fit, page by page, until its page of the console is left. */
export function ExportPayments({ filters }: { filters: Filters }) {
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<ApiError>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function run(): Promise<void> {
    const controller = new AbortController();
    running.current = controller;
    setError(undefined);
    try {
      const lines = [columns.join(",")];
      let cursor: string | undefined;
      do {
        setCount(lines.length - 1);
        const page = await read(
          "payments.list",
          { ...filters, ...(cursor === undefined ? {} : { cursor }), limit: 1_000 },
          { signal: controller.signal },
        );
        for (const row of page.payments) lines.push(toCsv(columns.map((name) => row[name])));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      download(lines);
    } catch (thrown) {
      if (thrown instanceof ApiError) setError(thrown);
      else if (!controller.signal.aborted) throw thrown;
    } finally {
      setCount(undefined);
    }
  }

  if (count !== undefined) {
    return (
      <>
        <span role="status" class="soft figures">
          {count} rows
        </span>
        <button type="button" onClick={() => running.current?.abort()}>
          Cancel
        </button>
      </>
    );
  }
  return (
    <>
      {error && (
        <span role="alert" class="bad">
          {error.message} <code>{error.code}</code>
        </span>
      )}
      <button type="button" onClick={() => void run()}>
        Export CSV
      </button>
    </>
  );
}

function download(lines: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `payments-${new Date().toISOString().slice(0, 10)}.csv`;
  link.click();
  URL.revokeObjectURL(url);
}
