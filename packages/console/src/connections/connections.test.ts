import { once } from "node:events";
import { connect } from "node:net";
import { operatorAt } from "@coinslot/facilitator";
import { expect, it, onTestFinished } from "vitest";
import { openStream } from "../testing/open-stream.ts";
import { signIn, startTestConsole } from "../testing/signed-in.ts";
import { ofPage } from "../testing/visit-console.ts";

const operator = operatorAt("sqlite:/nonexistent/ledger.db");

/** Opens connections that send nothing. */
async function crowd(url: string, count: number): Promise<void> {
  const { port, hostname } = new URL(url);
  for (let each = 0; each < count; each += 1) {
    const peer = connect(Number(port), hostname);
    onTestFinished(() => void peer.destroy());
    peer.on("error", () => undefined);
    await once(peer, "connect");
  }
}

it("has room for the operator while strangers hold as many connections as they get", async () => {
  const { url, link } = await startTestConsole(operator);
  await crowd(url, 200);
  const browser = await signIn(url, { link: link() });
  expect((await browser.send({ path: "/api/session" })).json).toMatchObject({ role: "operator" });
});

it("keeps the operator's own connections while strangers come", async () => {
  const { url, link } = await startTestConsole(operator);
  const browser = await signIn(url, { link: link() });
  const stream = await openStream(url, ofPage(url, browser.token, browser.cookie));
  await crowd(url, 200);
  await browser.send({ method: "DELETE", path: "/api/session" });
  await expect.poll(stream.events, { timeout: 20_000 }).toContain("ended");
});
