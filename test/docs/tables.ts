/** A table of a document. */
export interface Table {
  /** Of its first column. */
  heading: string;
  /** The leading code of each row's first column. */
  names: string[];
}

/** Reads the tables of a document. */
export function readTables(markdown: string): Table[] {
  return markdown
    .split(/\n(?!\|)/)
    .map((part) => part.trim())
    .filter((part) => part.startsWith("|"))
    .map((part) => {
      const [head = "", , ...rows] = part.split("\n").map((row) => row.split("|")[1]?.trim() ?? "");
      return { heading: head, names: rows.map((cell) => /`([^`]+)`/.exec(cell)?.[1] ?? cell) };
    });
}
