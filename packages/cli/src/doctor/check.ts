/** One check: subject, finding and remedy. */
export interface Check {
  topic: "settings" | "rpc" | "token" | "relayer" | "clock" | "channels" | "ledger" | "recipient";
  /** A chain's name, where it is about one. */
  about?: string;
  /** `broken`: selling or buying does not work. `skipped`: there is nothing to look at. */
  status: "ok" | "warning" | "broken" | "skipped";
  /** A sentence; it names the remedy, where one is needed. */
  found: string;
}

/** Sentences of a finding as checks; without any, the check is ok. */
export function toChecks(
  subject: Pick<Check, "topic" | "about">,
  { problems, warnings }: { problems: readonly string[]; warnings: readonly string[] },
  finding: string,
): Check[] {
  const broken = problems.map((found): Check => ({ ...subject, status: "broken", found }));
  const warned = warnings.map((found): Check => ({ ...subject, status: "warning", found }));
  const all = [...broken, ...warned];
  return all.length > 0 ? all : [{ ...subject, status: "ok", found: finding }];
}
