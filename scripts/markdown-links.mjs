// Links of a Markdown page that lead to other files of the repository.

const link = /(?<=\]\()(?!\w+:|#|\/\/)([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?=(?:\s+"[^"]*")?\))/g;

/**
 * Replaces the target of each relative link. Code is left as it is.
 *
 * @param {string} markdown
 * @param {(target: string) => string} replace
 */
export function replaceLinks(markdown, replace) {
  // Every second part is a code block or a code span.
  return markdown
    .split(/(^```[\s\S]*?^```$|`[^`\n]+`)/m)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(link, replace)))
    .join("");
}
