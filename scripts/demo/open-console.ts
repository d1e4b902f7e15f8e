import { startConsole } from "@coinslot/console";
import { operatorAt } from "@coinslot/facilitator";
import type { Market } from "./market.ts";
import { atUsualPort } from "./usual-port.ts";

/** A console that runs, and a link that signs one browser in. */
export interface OpenedConsole {
  link: string;
  close(): Promise<void>;
}

/**
 * Opens a console beside the market's seller, on its ledger: at the usual port, or at a free one.
 * Later links and codes are printed.
 */
export async function openConsole({ ledger }: Market): Promise<OpenedConsole> {
  const operator = operatorAt(ledger);
  let first: string[] | undefined = [];
  const print = (line: string) => void (first === undefined ? console.log(line) : first.push(line));
  const opened = await atUsualPort((port: number) => startConsole(operator, { port, print }), {
    usual: 4040,
    free: 0,
  });
  const link = first.find((line) => line.includes("/#sign-in="))?.trim();
  first = undefined;
  if (link === undefined) throw new Error("The console printed no link.");
  return { link, close: opened.close };
}
