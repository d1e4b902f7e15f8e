import type { Place } from "./command-places.ts";

/** For fish 3 and newer. */
export function fishScript(places: readonly Place[]): string {
  const inner = places.filter(({ path }) => path !== "").map(({ path }) => quoteForFish(path));
  const lines = places.flatMap(({ path, words, options }) => {
    const at = `complete -c coinslot -n ${quoteForFish(`__coinslot_at ${quoteForFish(path)}`)}`;
    const named = words.map(
      ({ word, description }) => `${at} -f -a ${word} -d ${quoteForFish(description)}`,
    );
    const flagged = options.map(({ flags, description, values }) => {
      const names = flags.map((flag) =>
        flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      return `${at} ${names.join(" ")}${formatValue(values)} -d ${quoteForFish(description)}`;
    });
    return [...named, ...flagged];
  });
  return `# fish completion for coinslot
function __coinslot_at
    set -l place ''
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
            case ${inner.join(" ")}
                set place "$place $word"
        end
    end
    test "$place" = "$argv[1]"
end
${lines.join("\n")}`;
}

function formatValue(values: readonly string[] | undefined): string {
  if (values === undefined) return "";
  return values.length > 0 ? ` -x -a ${quoteForFish(values.join(" "))}` : " -r";
}

function quoteForFish(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
