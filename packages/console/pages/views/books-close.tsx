import { useState } from "preact/hooks";
import { act } from "../api/act.ts";
import { ActDialog } from "../parts/act-dialog.tsx";

/** Closes the books up to the end of a month, once all in it is final. */
export function BooksClose({ until }: { until: string }) {
  const [isAsked, setIsAsked] = useState(false);
  // A month that has not ended cannot be closed.
  if (Date.parse(until) > Date.now()) return null;

  async function run(): Promise<string> {
    const argument = { until: Date.parse(until) };
    const { isNew } = await act("books.close", argument, { subject: until });
    return isNew
      ? `All periods before ${until.slice(0, 10)} are closed.`
      : "These periods were closed already. Nothing was changed.";
  }

  return (
    <>
      <button type="button" onClick={() => setIsAsked(true)}>
        Close the month
      </button>
      {isAsked && (
        <ActDialog
          title="Close the books"
          verb="Close the books"
          run={run}
          onClose={() => setIsAsked(false)}
        >
          <p>
            Close all periods before {until.slice(0, 10)}? No entry can be posted in them any more.
            It cannot be undone.
          </p>
        </ActDialog>
      )}
    </>
  );
}
