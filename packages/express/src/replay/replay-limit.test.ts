import { connect, type Socket } from "node:net";
import { headerName } from "@coinslot/protocol";
import { expect, it, onTestFinished, vi } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option } from "../testing/shop.ts";

it("sends four copies of a kept answer at once, however many are asked for and not read", async () => {
  const size = 4 * 2 ** 20 - 1;
  const shop = await openShop({
    routes: { "GET /paid": { accepts: option() } },
    serve(app) {
      app.get("/paid", (_request, response) => {
        response.send(Buffer.alloc(size));
      });
    },
    options: { maxKeptAnswerBytes: size },
  });
  onTestFinished(() => shop.close());
  const url = `${shop.url}/paid`;
  const payment = await createBuyer().payFor(url);
  const headers = { ...payment.headers, [headerName.idempotencyKey]: "a-key-of-the-buyer" };
  const ask = async () => {
    const response = await fetch(url, { headers });
    return { status: response.status, size: (await response.arrayBuffer()).byteLength };
  };
  expect(await ask()).toEqual({ status: 200, size });
  expect(await ask()).toEqual({ status: 200, size });

  const { host, hostname, port } = new URL(url);
  const lines = Object.entries({ host, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const request = `GET /paid HTTP/1.1\r\n${lines.join("")}\r\n`;
  const readers: Socket[] = [];
  await vi.waitFor(async () => {
    const socket = connect(Number(port), hostname).pause();
    socket.write(request.repeat(4));
    readers.push(socket);
    expect(await ask()).toMatchObject({ status: 409 });
  }, 20_000);
  for (const socket of readers) socket.destroy();
  await vi.waitFor(async () => expect(await ask()).toEqual({ status: 200, size }), 20_000);
});
