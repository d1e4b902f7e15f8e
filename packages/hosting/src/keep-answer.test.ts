import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { keepAnswer } from "./keep-answer.ts";

function createQuestion() {
  const asked: { resolve: (n: number) => void; reject: (error: Error) => void }[] = [];
  let nowMs = 0;
  const answer = keepAnswer(
    () => new Promise<number>((resolve, reject) => asked.push({ resolve, reject })),
    { keepMs: 1_000, now: () => nowMs },
  );
  return {
    answer,
    asked,
    passTo(ms: number) {
      nowMs = ms;
    },
  };
}

test("concurrent callers share one slow answer", async () => {
  const { answer, asked, passTo } = createQuestion();
  const first = answer();
  passTo(30_000);
  const second = answer();
  asked[0]?.resolve(1);
  expect(await Promise.all([first, second])).toEqual([1, 1]);
  expect(asked).toHaveLength(1);
});

test("an answer is cached for a second from its arrival", async () => {
  const { answer, asked, passTo } = createQuestion();
  const first = answer();
  asked[0]?.resolve(1);
  await first;
  passTo(999);
  expect(await answer()).toBe(1);
  passTo(1_000);
  const next = answer();
  asked[1]?.resolve(2);
  expect(await next).toBe(2);
});

test("a failure is cached as well, and the question is asked again after it", async () => {
  const { answer, asked, passTo } = createQuestion();
  const first = answer();
  asked[0]?.reject(new Error("away"));
  await expect(first).rejects.toThrow("away");
  await expect(answer()).rejects.toThrow("away");
  expect(asked).toHaveLength(1);
  passTo(1_000);
  const next = answer();
  await nextTurn();
  asked[1]?.resolve(2);
  expect(await next).toBe(2);
});
