import type { InspectorFacts } from "../src/page/page-server.ts";
import { Copy } from "./copy.tsx";

/** The list without cycles: what to do next. */
export function Empty(props: {
  facts: InspectorFacts | undefined;
  passed: number;
  isFiltered: boolean;
}) {
  const { facts, passed, isFiltered } = props;
  if (isFiltered) return <p class="soft hint">No cycle matches the filter.</p>;
  const command = `curl -i ${facts?.proxyUrl ?? ""}/`;
  return (
    <div class="hint">
      <h2>No 402 has passed yet</h2>
      <p>Ask a paid route of the seller by the address of the proxy:</p>
      <p>
        <Copy text={command} label="Command" />
      </p>
      {passed > 0 && (
        <p class="soft">
          Requests arrive, and none was answered 402. Is the route sold, with this method?
        </p>
      )}
    </div>
  );
}
