import { describe, expect, it } from "vitest";
import { createDatabaseUrl, stands, startApi, type TestAnswer } from "./testing/api-server.ts";
import { publishedOperations } from "./testing/published-facts.ts";
import { alice } from "./testing/transfers.ts";

const balance = `/api/v1/plasma/usdt/${alice}/token-balances`;
/** Ten requests in an hour: a window that outlasts each test. */
const hourly = "/api/v1/health";
const withKey = (key: string) => ({ headers: { "x-api-key": key } });
const item = { blockchain: "plasma", token: "usdt", address: alice };
const values = { "{blockchain}": "plasma", "{token}": "usdt", "{address}": alice };

describe.each(stands)("rate limits on $engine, Express $expressVersion", (stand) => {
  it.each(publishedOperations)(
    "admit $max through $method $path",
    async ({ method, path, max, windowSeconds }) => {
      const { call, post, createKey } = await startApi(stand);
      const target = Object.entries(values).reduce<string>(
        (text, [name, value]) => text.replace(name, value),
        path,
      );
      const key = await createKey();
      const send = () =>
        method === "post" ? post(target, [item], withKey(key)) : call(target, withKey(key));

      // On a busy machine a window may end meanwhile: never before its time, and the count begins
      // anew.
      let began = performance.now();
      let left: number = max;
      let answer: TestAnswer;
      for (;;) {
        const sent = performance.now();
        answer = await send();
        if (answer.status === 429) break;
        const { status, headers } = answer;
        expect(status).toBe(200);
        const hasEnded = performance.now() - began >= windowSeconds * 1_000;
        if (hasEnded && headers.get("ratelimit")?.includes(`;r=${max - 1};`)) {
          left = max;
          began = sent;
        }
        left -= 1;
        expect(headers.get("ratelimit")).toContain(`;r=${left};`);
        expect(headers.get("ratelimit-policy")).toContain(`;q=${max};w=${windowSeconds}`);
      }
      expect(left).toBe(0);
      const refused = answer;
      expect(refused).toMatchObject({
        status: 429,
        body: { error: "Too Many Requests", status: 429 },
      });
      const retryAfter = Number(refused.headers.get("retry-after"));
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(windowSeconds);
      expect(refused.headers.get("ratelimit")).toContain(`;r=0;t=`);

      // Another key, and another operation, are counted by themselves.
      const other = await createKey();
      expect(await call(balance, withKey(other))).toMatchObject({ status: 200 });
      const elsewhere = path.endsWith("token-balances") ? "/api/v1/chains" : balance;
      expect(await call(elsewhere, withKey(key))).toMatchObject({ status: 200 });
    },
  );

  it("are raised for a key, and never lowered", async () => {
    const { call, createKey } = await startApi(stand);
    const raised = await createKey({ limit: { max: 30, windowMs: 60_000 } });
    const policy = async (path: string) =>
      (await call(path, withKey(raised))).headers.get("ratelimit-policy");
    expect(await policy(balance)).toBe('"getTokenBalances";q=30;w=60');
    expect(await policy("/api/v1/health")).toBe('"getHealth";q=30;w=60');
    // 60 a minute are more than 30.
    expect(await policy("/api/v1/chains")).toBe('"listChains";q=60;w=60');
  });

  it("start over with the next window", async () => {
    const { call, createKey } = await startApi(stand);
    const key = await createKey({ limit: { max: 2, windowMs: 250 } });
    const send = () => call(balance, withKey(key));
    await send();
    await send();
    const answers: TestAnswer[] = [];
    do answers.push(await send());
    while (answers.at(-1)?.status === 429 && answers.length < 1_000);
    expect(answers.at(-1)?.status).toBe(200);
  });

  it("hold for concurrent requests", async () => {
    const { call, createKey } = await startApi(stand);
    const key = await createKey();
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(hourly, withKey(key))));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10);
  });
});

describe("rate limits of several processes on one PostgreSQL", () => {
  it("are counted together", async () => {
    const databaseUrl = await createDatabaseUrl("postgres");
    const stand = { engine: "postgres", expressVersion: 5 } as const;
    const [one, other] = [
      await startApi(stand, { databaseUrl }),
      await startApi(stand, { databaseUrl }),
    ];
    const key = await one.createKey();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        (index % 2 === 0 ? one : other).call(hourly, withKey(key)),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
  });
});
