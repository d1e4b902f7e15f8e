import { describe, expect, it } from "vitest";
import { type Listening, listen } from "./testing/listen.ts";
import { type Seller, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch, refusalOf } = world;

describe("a redirect", () => {
  function redirectTo(target: () => string, status = 307): Promise<Listening> {
    return listen((_, response) => void response.writeHead(status, { Location: target() }).end());
  }

  it("ends the request at another origin that asks for payment", async () => {
    const seller = keep(await startSeller());
    const decoy = keep(await redirectTo(() => seller.url));
    expect((await refusalOf(createFetch()(decoy.url), seller)).code).toBe("redirected");
  });

  it("ends the request with another method, even on the same origin", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          if (request.url !== "/old") return false;
          response.writeHead(307, { Location: "/new" }).end();
          return true;
        },
      }),
    );
    const call = createFetch()(`${seller.url}/old`, { method: "POST", body: "x" });
    expect((await refusalOf(call, seller)).code).toBe("redirected");
  });

  it("leads a GET to the paid route on the same origin", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          if (request.url !== "/old") return false;
          response.writeHead(302, { Location: "/new" }).end();
          return true;
        },
      }),
    );
    expect((await createFetch()(`${seller.url}/old`)).status).toBe(200);
    expect(seller.paid.map(({ request }) => request.url)).toEqual(["/new"]);
  });

  it("is not followed for a paid request: the payment goes nowhere else", async () => {
    const other = keep(await startSeller());
    const seller = keep(
      await startSeller({
        onPaid: (_, response) => {
          response.writeHead(307, { Location: other.url }).end();
          return true;
        },
      }),
    );
    const response = await createFetch()(seller.url);
    expect(response.status).toBe(307);
    expect(other.unpaid).toHaveLength(0);
    expect(other.paid).toHaveLength(0);
    expect(world.account().signatures()).toBe(1);
  });
});

describe("plain HTTP", () => {
  // A remote host without a network: the requests are answered here.
  function elsewhere(seller: Seller): typeof fetch {
    return (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      return fetch(new URL(url.pathname, seller.url), init);
    };
  }

  it("carries no payment unless allowed, and free answers pass", async () => {
    const seller = keep(
      await startSeller({
        resource: () => "http://shop.example/",
        onUnpaid: (request, response) => {
          if (request.url !== "/free") return false;
          response.end("free");
          return true;
        },
      }),
    );
    const options = {
      fetch: async (...args: Parameters<typeof fetch>) => {
        const response = await elsewhere(seller)(...args);
        return new Response(response.body, response);
      },
    };
    const pay = createFetch(options);
    expect(await (await pay("http://shop.example/free")).text()).toBe("free");
    expect((await refusalOf(pay("http://shop.example/"), seller)).code).toBe("insecure_url");
    const insecure = createFetch({ ...options, allowInsecureHttp: true });
    expect((await insecure("http://shop.example/")).status).toBe(200);
    expect((await pay("https://shop.example/")).status).toBe(200);
  });
});

describe("a URL with credentials", () => {
  it("is refused as fetch refuses it, without repeating the credentials", async () => {
    const error = await createFetch()("https://user:hunter2@shop.example/").catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).not.toContain("hunter2");
  });
});
