import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/api-error.ts";
import type { Loaded } from "../api/use-operation.ts";
import { Time } from "./format-parts.tsx";

/** An error: what happened, what to do, and a code to search for. */
export function Fault({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="fault" role="alert">
      <p>
        <strong>{error.message}</strong>
      </p>
      {error.remedy && <p>{error.remedy}</p>}
      <p class="fault-foot">
        <code>{error.code}</code>
        {retry && (
          <button type="button" onClick={retry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}

/** Nothing to show, and the next step. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

/** The shape of what is loaded. */
export function Skeleton({ lines = 6 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="aside">Loading</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="bone" aria-hidden="true" />
      ))}
    </div>
  );
}

interface ViewProps<Result> {
  of: Loaded<Result>;
  lines?: number;
  children: (data: Result) => ComponentChildren;
}

/** Shows what was read: a skeleton before, an error with its code, stale data with its age. */
export function View<Result>({ of, lines = 6, children }: ViewProps<Result>) {
  const { data, error, readAt, reload } = of;
  if (data === undefined) {
    return error === undefined ? (
      <Skeleton lines={lines} />
    ) : (
      <Fault error={error} retry={reload} />
    );
  }
  return (
    <>
      {error && (
        <div class="stale" role="status">
          <p>
            Read <Time at={readAt} />. {error.message} <code>{error.code}</code>
          </p>
          <button type="button" onClick={reload}>
            Try again
          </button>
        </div>
      )}
      {children(data)}
    </>
  );
}
