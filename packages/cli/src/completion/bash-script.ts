import type { Place } from "./command-places.ts";
import { quote } from "./quote.ts";

/** For bash 3.2 and newer, without the package bash-completion. */
export function bashScript(places: readonly Place[]): string {
  const inner = places.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  const valued = places.flatMap(({ path, options }) =>
    options.flatMap(({ flags, values }) => {
      if (values === undefined) return [];
      const when = flags.map((flag) => quote(`${path} ${flag}`)).join("|");
      return [`    ${when}) words=${quote(values.join(" "))} ;;`];
    }),
  );
  const offered = places.map(({ path, words, options }) => {
    const flags = options.flatMap((option) => option.flags);
    const [named, flagged] = [words.map(({ word }) => word).join(" "), flags.join(" ")];
    return `      ${quote(path)}) words=${quote(named)} options=${quote(flagged)} ;;`;
  });
  return `# bash completion for coinslot
_coinslot() {
  local current=\${COMP_WORDS[COMP_CWORD]} place= words= options= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
      ${inner.join("|")}) place="$place $word" ;;
    esac
  done
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
${valued.join("\n")}
    *) case "$place" in
${offered.join("\n")}
    esac
    if [[ $current == -* || -z $words ]]; then words=$options; fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _coinslot coinslot`;
}
