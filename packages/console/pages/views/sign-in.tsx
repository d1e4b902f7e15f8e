import { useState } from "preact/hooks";
import { ApiError } from "../api/api-error.ts";
import { requestLink, type SessionState, signIn } from "../api/session.ts";
import { Fault } from "../parts/states.tsx";

/** Sign-in: by the link that the console prints where it runs, or by its key. */
export function SignIn({ state }: { state: SessionState }) {
  const [error, setError] = useState<ApiError>();
  const [isPrinted, setIsPrinted] = useState(false);
  const [isBusy, setIsBusy] = useState(false);

  async function trying(work: () => Promise<void>): Promise<void> {
    setIsBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
    } finally {
      setIsBusy(false);
    }
  }

  function submitKey(event: SubmitEvent): void {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const key = new FormData(event.currentTarget).get("key");
    if (typeof key === "string" && key !== "") void trying(() => signIn({ key }));
  }

  return (
    <main class="sign-in">
      <p class="brand">Coinslot</p>
      <h1>Sign in</h1>
      {state.signIn.link && (
        <section>
          <p>
            The console prints a link where it runs. The link opens this page once, and signs you
            in.
          </p>
          <button
            type="button"
            class="primary"
            disabled={isBusy}
            onClick={() =>
              void trying(async () => {
                await requestLink();
                setIsPrinted(true);
              })
            }
          >
            Print a fresh link
          </button>
          <p role="status" class="soft">
            {isPrinted && "Printed. Open it from the terminal, or the log, of the seller."}
          </p>
        </section>
      )}
      {state.signIn.key && (
        <form onSubmit={submitKey}>
          <label for="key">Key of the console</label>
          <input id="key" name="key" type="password" autocomplete="current-password" required />
          <button type="submit" disabled={isBusy}>
            Sign in
          </button>
        </form>
      )}
      {error && <Fault error={error} />}
    </main>
  );
}
