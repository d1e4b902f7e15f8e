import { linkLifeMs, type OneTimeLinks } from "./one-time-links.ts";

/**
 * Prints a fresh link. Its secret is in the fragment, which no log and no `Referer` gets.
 *
 * @param address origin and mount of the console
 */
export function printLink(options: {
  links: OneTimeLinks;
  print: (line: string) => void;
  address: string;
  mayAct: boolean;
}): void {
  const { links, print, address, mayAct } = options;
  const token = links.issue();
  if (token === undefined) return;
  const purpose = mayAct ? "act" : "read";
  const minutes = linkLifeMs / 60_000;
  print(`Sign in to the console, to ${purpose}, once, within ${minutes} minutes:`);
  print(`  ${address}/#sign-in=${token}`);
}
