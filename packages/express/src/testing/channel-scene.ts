import type { Response as ExpressResponse, Request } from "express";
import { beforeEach } from "vitest";
import {
  channelOfferOf,
  channelOption,
  createChannelBuyer,
  openChannelShop,
} from "./channel-shop.ts";
import { option } from "./shop.ts";

type Handler = (request: Request, response: ExpressResponse) => void;

type SceneParts = Partial<Parameters<typeof openChannelShop>[0]> & {
  route?: object;
  method?: "GET" | "POST";
};

/** Shops of one route, and the number of runs of its handler in a test. */
export function channelSceneForEachTest() {
  const scene = { runs: 0, open };

  beforeEach(() => {
    scene.runs = 0;
  });

  function count(_request: Request, response: ExpressResponse): void {
    scene.runs += 1;
    response.json({ runs: scene.runs });
  }

  /** A shop of one route, and a buyer that has seen its offer. */
  async function open(handler: Handler = count, parts: SceneParts = {}) {
    const { method = "GET", route = {}, ...others } = parts;
    const shop = await openChannelShop({
      routes: { "/weather": { accepts: [option(), channelOption()], ...route } },
      serve: (app) => void app.all("/weather", handler),
      ...others,
    });
    const url = `${shop.url}/weather`;
    const buyer = createChannelBuyer();
    const offer = channelOfferOf(await fetch(url, { method }));
    const send = (headers: Record<string, string>, init: RequestInit = {}) =>
      fetch(url, { method, headers, ...init });
    const buy = async (ceiling: bigint, init: RequestInit = {}) =>
      send(await buyer.pay(offer, ceiling), init);
    const channelId = buyer.idOf(offer);
    return { shop, url, buyer, offer, send, buy, channelId };
  }

  return scene;
}

/** The response of a handler that has begun. */
export function deferredResponse() {
  let resolve: (response: ExpressResponse) => void = () => undefined;
  const response = new Promise<ExpressResponse>((done) => {
    resolve = done;
  });
  return { response, resolve };
}
