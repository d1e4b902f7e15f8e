import type { Listening } from "@coinslot/devnet";
import express from "express";
import { afterEach, expect, it } from "vitest";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";

it.each([
  ["/*rest", "http://shop/api"],
  ["/*rest", "https://shop:80/API/?a=b"],
  ["{/*more}/:name", "http://shop/api"],
])(
  "a router behind an optional mount does not serve %s for an absolute URL that it misreads: %s",
  async (path, target) => {
    const shop = await openShop({
      express,
      routes: { [`GET /api{/:language}${path}`]: { accepts: option() } },
      serve(app) {
        const inner = express.Router().get(path, (_request, response) => {
          response.send(content);
        });
        app.use("/api", express.Router().use("{/:language}", inner));
      },
    });
    opened.push(shop);
    const { answer, status } = await sendTarget(shop, target);
    expect(answer).not.toContain(content);
    expect(status).toBe(400);
  },
);
