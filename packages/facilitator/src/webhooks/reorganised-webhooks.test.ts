import { describe, expect, it, onTestFinished } from "vitest";
import { settle } from "../testing/settling-actions.ts";
import { enginesByDay, startSettlingDevnet } from "../testing/settling-devnet.ts";
import { openWebhookReceiver, webhookSecret } from "../testing/webhook-receiver.ts";

const patience = { timeout: 30_000 };

describe.each(enginesByDay("sqlite"))("a payment whose block leaves the chain, on %s", (engine) => {
  it("is told as settled, reverted and settled, in this order, though the receiver was away", async () => {
    const place = await startSettlingDevnet(engine);
    onTestFinished(() => place.stop());
    const { devnet, start, pay } = place;
    let status = 503;
    const receiver = await openWebhookReceiver((_, response) => {
      response.writeHead(status).end();
    });
    onTestFinished(() => receiver.close());
    const hook = { url: receiver.url, secret: webhookSecret, unsafeAllowPrivateAddresses: true };
    const facilitator = await start({ times: { resendMs: 200 }, webhooks: [hook] });
    await devnet.mine(2);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    await expect.poll(() => receiver.received.length, patience).toBeGreaterThan(0);
    status = 204;
    const first = (await facilitator.payments.list()).payments[0];
    await devnet.reorg({ depth: 1 });
    await devnet.mine(6);
    const types = () => {
      const ids = receiver.received.map(({ id }) => id);
      const { received } = receiver;
      return received.flatMap(({ id, type }, index) => (ids.lastIndexOf(id) === index ? type : []));
    };
    await expect
      .poll(() => types().slice(0, 3), patience)
      .toEqual(["payment.settled", "payment.reverted", "payment.settled"]);
    const { data } = receiver.received.at(0) ?? {};
    expect(data?.payment).toBe(first?.id);
  });
});
