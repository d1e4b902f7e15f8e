import { formatCount } from "@coinslot/pages/format";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/api-error.ts";
import type { Result } from "../api/operations.ts";
import { read } from "../api/use-operation.ts";
import { Copyable, networkName } from "../parts/format-parts.tsx";
import { Fault } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";

type BookFault = Result<"books.check">["faults"][number];

const maxFaults = 100;

const columns: readonly Column<BookFault>[] = [
  { title: "Fault", cell: ({ fault }) => fault },
  { title: "Source", cell: ({ sourceId }) => <Copyable text={sourceId} what="id" /> },
  { title: "Network", isExtra: true, cell: ({ network }) => networkName(network) },
  {
    title: "Transaction",
    isExtra: true,
    cell: ({ transaction }) => <Copyable text={transaction} what="hash" />,
  },
];

interface Checked {
  compared: number;
  faults: readonly BookFault[];
  isRunning: boolean;
}

/**
 * Compares the books with the ledger, step by step, until it is left. The chain is asked by the
 * command.
 */
export function BooksCheck({ range }: { range: { from: string; to: string } }) {
  const [checked, setChecked] = useState<Checked>();
  const [error, setError] = useState<ApiError>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function run(): Promise<void> {
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    setError(undefined);
    let sum: Checked = { compared: 0, faults: [], isRunning: true };
    setChecked(sum);
    try {
      for (let from: string | null = range.from; from !== null && sum.faults.length < maxFaults; ) {
        const step: Result<"books.check"> = await read(
          "books.check",
          { ...range, from },
          { signal },
        );
        sum = {
          compared: sum.compared + step.compared,
          faults: [...sum.faults, ...step.faults],
          isRunning: true,
        };
        setChecked(sum);
        from = step.next;
      }
    } catch (thrown) {
      if (signal.aborted) return;
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
    }
    setChecked({ ...sum, isRunning: false });
  }

  return (
    <>
      <p class="soft">
        Compares payments, refunds and gas with their entries. The chain is compared by{" "}
        <code>coinslot books check</code>.
      </p>
      <div class="actions check">
        <button type="button" disabled={checked?.isRunning} onClick={() => void run()}>
          Check the books
        </button>
        <p role="status" class="figures">
          {checked && <Outcome checked={checked} isWhole={error === undefined} />}
        </p>
      </div>
      {error && <Fault error={error} />}
      {checked !== undefined && checked.faults.length > 0 && (
        <Table
          caption="Faults of the books"
          columns={columns}
          rows={checked.faults}
          keyOf={({ fault, sourceId }) => `${fault} ${sourceId}`}
        />
      )}
    </>
  );
}

function Outcome({ checked, isWhole }: { checked: Checked; isWhole: boolean }) {
  const rows = `${formatCount(checked.compared)} rows compared`;
  if (checked.isRunning) return <>{rows} …</>;
  if (checked.faults.length > 0) {
    return <span class="bad">{`${checked.faults.length} differences; ${rows}.`}</span>;
  }
  return <>{isWhole ? `No difference. ${rows}.` : `Stopped: ${rows}.`}</>;
}
