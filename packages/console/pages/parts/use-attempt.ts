import { useState } from "preact/hooks";
import { ApiError } from "../api/api-error.ts";

/** Work that a button does: one at a time, and its error. */
export interface Attempt {
  isBusy: boolean;
  error: ApiError | undefined;
  /** @returns whether it was done */
  run(work: () => Promise<void>): Promise<boolean>;
}

/** Follows the work of a button or a form. */
export function useAttempt(): Attempt {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<ApiError>();

  async function run(work: () => Promise<void>): Promise<boolean> {
    setIsBusy(true);
    setError(undefined);
    try {
      await work();
      return true;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
      return false;
    } finally {
      setIsBusy(false);
    }
  }

  return { isBusy, error, run };
}
