import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Confirmation } from "./confirmation.tsx";
import { Fault } from "./states.tsx";
import { useAttempt } from "./use-attempt.ts";

interface ActDialogProps {
  title: string;
  /** On the button that acts. */
  verb: string;
  /** The form has all that it needs. Default true. */
  isReady?: boolean;
  /**
   * Acts. @param confirmation the key or code, where an answer has asked for it
   * @returns what was done, in words
   */
  run: (confirmation: string) => Promise<string>;
  onClose: () => void;
  /** The question, and the fields. */
  children: ComponentChildren;
}

/** Asks once before it acts, and says what was done. */
export function ActDialog({ title, verb, isReady = true, run, onClose, children }: ActDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const attempt = useAttempt();
  const [confirmation, setConfirmation] = useState("");
  const [done, setDone] = useState<string>();
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    if (isReady && !attempt.isBusy) {
      void attempt.run(async () => setDone(await run(confirmation)));
    }
  }

  return (
    <dialog ref={dialog} onClose={onClose} aria-label={title}>
      <form class="form" onSubmit={submit}>
        <h2>{title}</h2>
        {done === undefined ? (
          <>
            {children}
            {attempt.error && <Fault error={attempt.error} />}
            <Confirmation error={attempt.error} value={confirmation} onInput={setConfirmation} />
            <div class="actions">
              <button type="button" onClick={close}>
                Back
              </button>
              <button type="submit" class="primary" disabled={attempt.isBusy || !isReady}>
                {verb}
              </button>
            </div>
          </>
        ) : (
          <>
            <p role="status">{done}</p>
            <div class="actions">
              <button type="button" class="primary" onClick={close}>
                Done
              </button>
            </div>
          </>
        )}
      </form>
    </dialog>
  );
}
