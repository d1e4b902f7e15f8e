import type { ComponentChildren } from "preact";
import { Page } from "./parts/page.tsx";
import { Empty } from "./parts/states.tsx";
import type { Place } from "./router.tsx";
import { Audit } from "./views/audit.tsx";
import { Books } from "./views/books.tsx";
import { Buyers } from "./views/buyers.tsx";
import { Chains } from "./views/chains.tsx";
import { Channel } from "./views/channel.tsx";
import { Channels } from "./views/channels.tsx";
import { Payment } from "./views/payment.tsx";
import { Payments } from "./views/payments.tsx";
import { Refunds } from "./views/refunds.tsx";
import { Relayers } from "./views/relayers.tsx";
import { Routes } from "./views/routes.tsx";
import { Runbook } from "./views/runbook.tsx";
import { Today } from "./views/today.tsx";
import { Webhooks } from "./views/webhooks.tsx";

interface Section {
  title: string;
  path: string;
  /** In the navigation only where the ledger has a channel. */
  isOfChannels?: true;
  render: () => ComponentChildren;
}

/** Pages of the navigation. */
export const sections: readonly Section[] = [
  { title: "Today", path: "/", render: () => <Today /> },
  { title: "Payments", path: "/payments", render: () => <Payments /> },
  { title: "Routes", path: "/routes", render: () => <Routes /> },
  { title: "Buyers", path: "/buyers", render: () => <Buyers /> },
  { title: "Channels", path: "/channels", isOfChannels: true, render: () => <Channels /> },
  { title: "Refunds", path: "/refunds", render: () => <Refunds /> },
  { title: "Books", path: "/books", render: () => <Books /> },
  { title: "Webhooks", path: "/webhooks", render: () => <Webhooks /> },
  { title: "Relayers", path: "/relayers", render: () => <Relayers /> },
  { title: "Chains", path: "/chains", render: () => <Chains /> },
  { title: "Audit", path: "/audit", render: () => <Audit /> },
];

/** The view of an address, and the path of its section. */
export function viewOf({ path }: Place): Pick<Section, "path" | "render"> {
  const id = /^\/payments\/([0-9a-f]{1,64})$/.exec(path)?.[1];
  if (id !== undefined) {
    return { path: "/payments", render: () => <Payment key={id} id={id} /> };
  }
  const channel = /^\/channels\/(0x[0-9a-f]{64})$/.exec(path)?.[1];
  if (channel !== undefined) {
    return { path: "/channels", render: () => <Channel key={channel} id={channel} /> };
  }
  const runbook = /^\/runbooks\/([\w-]+\.md)$/.exec(path)?.[1];
  if (runbook !== undefined) {
    return { path: "/", render: () => <Runbook key={runbook} name={runbook} /> };
  }
  return (
    sections.find((section) => section.path === path) ?? { path: "", render: () => <Missing /> }
  );
}

function Missing() {
  return (
    <Page title="Not found">
      <Empty title="There is no page at this address.">The navigation has the pages.</Empty>
    </Page>
  );
}
