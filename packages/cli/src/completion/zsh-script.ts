import type { Place } from "./command-places.ts";
import { quote } from "./quote.ts";

/** For zsh with its completion system. */
export function zshScript(places: readonly Place[]): string {
  const inner = places.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  const valued = places.flatMap(({ path, options }) =>
    options.flatMap(({ flags, values }) => {
      if (values === undefined) return [];
      const when = flags.map((flag) => quote(`${path} ${flag}`)).join("|");
      const offer = values.length > 0 ? `compadd -- ${values.map(quote).join(" ")}` : "_files";
      return [`    ${when}) ${offer}; return ;;`];
    }),
  );
  const offered = places.map(({ path, words, options }) => {
    const commands = words.map(({ word, description }) => describe(word, description));
    const flags = options.flatMap((option) =>
      option.flags.map((flag) => describe(flag, option.description)),
    );
    return `    ${quote(path)}) next=(${commands.join(" ")}); flags=(${flags.join(" ")}) ;;`;
  });
  return `#compdef coinslot
_coinslot() {
  local place= word
  local -a next flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      ${inner.join("|")}) place="$place $word" ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
${valued.join("\n")}
  esac
  case "$place" in
${offered.join("\n")}
  esac
  if [[ \${words[CURRENT]} == -* || \${#next} -eq 0 ]]; then
    _describe -o option flags || _files
  else
    _describe command next
  fi
}
compdef _coinslot coinslot`;
}

function describe(word: string, description: string): string {
  return quote(`${word}:${description.replaceAll(":", "\\:")}`);
}
