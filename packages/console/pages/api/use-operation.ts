import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api-error.ts";
import { ask } from "./ask.ts";
import { changes } from "./events.ts";
import type { ReadName, Reads } from "./operations.ts";
import { noteRefusal } from "./session.ts";

/** A read of the ledger, as a page shows it. */
export interface Loaded<Result> {
  /** The latest result, also while a newer one is loaded, or failed to. */
  data: Result | undefined;
  error: ApiError | undefined;
  /** When `data` was read, in milliseconds since 1970. */
  readAt: number;
  isLoading: boolean;
  reload: () => void;
}

/** Runs a reading operation. @throws ApiError */
export async function read<Name extends ReadName>(
  name: Name,
  argument: Reads[Name]["argument"],
  options: { isBackground?: boolean; signal?: AbortSignal } = {},
): Promise<Reads[Name]["result"]> {
  const result = await ask(name, { method: "POST", body: argument, ...options });
  return result as Reads[Name]["result"];
}

/**
 * Runs a reading operation for a page: at once, with each change of its argument, and whenever the
 * console says that something has changed.
 */
export function useOperation<Name extends ReadName>(
  name: Name,
  argument: Reads[Name]["argument"],
): Loaded<Reads[Name]["result"]> {
  const key = `${name} ${JSON.stringify(argument)}`;
  const [state, setState] = useState<State<Reads[Name]["result"]>>({ ...nothing, key });
  const latest = useRef(argument);
  latest.current = argument;
  const current = useRef<AbortController>(undefined);

  const load = useCallback(
    async (isBackground: boolean) => {
      current.current?.abort();
      const controller = new AbortController();
      current.current = controller;
      setState((before) => ({
        ...(before.key === key ? before : { ...nothing, key }),
        isLoading: true,
      }));
      try {
        const data = await read(name, latest.current, { isBackground, signal: controller.signal });
        // Aborted after its last byte, it must not replace what a later load has read.
        if (controller.signal.aborted) return;
        setState({ key, data, error: undefined, readAt: Date.now(), isLoading: false });
      } catch (error) {
        if (controller.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        noteRefusal(error);
        setState((before) => ({ ...before, error, isLoading: false }));
      }
    },
    [key, name],
  );

  useEffect(() => {
    void load(false);
    const end = changes.subscribe(() => void load(true));
    return () => {
      end();
      current.current?.abort();
    };
  }, [load]);

  const { key: shown, ...loaded } = state.key === key ? state : { ...nothing, key };
  return { ...loaded, reload: () => void load(false) };
}

interface State<Result> {
  key: string;
  data: Result | undefined;
  error: ApiError | undefined;
  readAt: number;
  isLoading: boolean;
}

const nothing = { data: undefined, error: undefined, readAt: 0, isLoading: true };
