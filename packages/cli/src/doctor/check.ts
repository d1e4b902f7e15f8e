/** What was looked at, what was found, and what to do. */
export interface Check {
  topic: "settings" | "rpc" | "token" | "relayer" | "clock" | "ledger";
  /** A chain's name, where it is about one. */
  about?: string;
  /** `broken`: selling or buying does not work. `skipped`: there is nothing to look at. */
  status: "well" | "warning" | "broken" | "skipped";
  /** In a sentence, which says what to do where something should be done. */
  found: string;
}

/** Sentences of a finding as checks; where there is none, it is well. */
export function toChecks(
  subject: Pick<Check, "topic" | "about">,
  { problems, warnings }: { problems: readonly string[]; warnings: readonly string[] },
  well: string,
): Check[] {
  const broken = problems.map((found): Check => ({ ...subject, status: "broken", found }));
  const warned = warnings.map((found): Check => ({ ...subject, status: "warning", found }));
  const all = [...broken, ...warned];
  return all.length > 0 ? all : [{ ...subject, status: "well", found: well }];
}
