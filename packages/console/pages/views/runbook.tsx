import { useEffect, useState } from "preact/hooks";
import { Markdown, runbookPath, sectionOf } from "../parts/markdown.tsx";
import { Page } from "../parts/page.tsx";
import { Empty, Skeleton } from "../parts/states.tsx";
import { Link, usePlace } from "../router.tsx";

/** Documents with runbooks: each is a file of its own, which is loaded when it is opened. */
const documents: Readonly<Record<string, () => Promise<{ default: string }>>> = {
  "close-the-month.md": () => import("../../../../docs/close-the-month.md?raw"),
  "operating.md": () => import("../../../../docs/operating.md?raw"),
  "protocol.md": () => import("../../../../docs/protocol.md?raw"),
  "refunding.md": () => import("../../../../docs/refunding.md?raw"),
  "webhooks.md": () => import("../../../../docs/webhooks.md?raw"),
};

/** A runbook: the section of a document, or all of it. */
export function Runbook({ name }: { name: string }) {
  const section = usePlace().query.get("section");
  const [text, setText] = useState<string>();
  const load = documents[name];
  useEffect(() => {
    void load?.().then((document) => setText(document.default));
  }, [load]);
  if (load === undefined) return <Unknown name={name} />;
  if (text === undefined) return <Skeleton />;
  const shown = section === null ? text : sectionOf(text, section);
  if (shown === undefined) return <Unknown name={`${name}#${section}`} />;
  return (
    <Page
      title="Runbook"
      actions={section !== null && <Link to={runbookPath(name)}>The whole page</Link>}
    >
      <Markdown text={shown} />
    </Page>
  );
}

function Unknown({ name }: { name: string }) {
  return (
    <Page title="Runbook">
      <Empty title="This release of the console has no such page.">
        It is <code>docs/{name}</code> in the documentation of the seller's release.
      </Empty>
    </Page>
  );
}
