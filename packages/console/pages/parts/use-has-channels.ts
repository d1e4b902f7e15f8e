import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/api-error.ts";
import { noteRefusal } from "../api/session.ts";
import { read } from "../api/use-operation.ts";

/** Whether the ledger has a channel. Until it has one, it is asked again with each section. */
export function useHasChannels(section: string): boolean {
  const [hasChannels, setHasChannels] = useState(false);
  useEffect(() => {
    if (hasChannels) return;
    const controller = new AbortController();
    const { signal } = controller;
    read("channels.list", { limit: 1 }, { isBackground: true, signal }).then(
      ({ channels }) => setHasChannels(channels.length > 0),
      (error: unknown) => {
        if (signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        noteRefusal(error);
      },
    );
    return () => controller.abort();
  }, [hasChannels, section]);
  return hasChannels;
}
