import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";

export interface Column<Row> {
  title: string;
  /** Amounts and counts are on the right, all else on the left. */
  isNumeric?: boolean;
  /** Left out on a phone. */
  isExtra?: boolean;
  cell: (row: Row) => ComponentChildren;
}

interface TableProps<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** All else of a row, below it, once its first cell is pressed. */
  detailOf?: (row: Row) => ComponentChildren;
}

/** A table. Its first link in each row is reached by `j` and `k`, too. */
export function Table<Row>({ caption, columns, rows, keyOf, detailOf }: TableProps<Row>) {
  const [opened, setOpened] = useState<readonly string[]>([]);
  const toggle = (key: string) =>
    setOpened((keys) =>
      keys.includes(key) ? keys.filter((each) => each !== key) : [...keys, key],
    );
  const classOf = ({ isNumeric = false, isExtra = false }: Column<Row>) =>
    [isNumeric ? "number" : "", isExtra ? "extra" : ""].join(" ").trim();
  return (
    // A table that is wider than the screen is moved by the keyboard, too.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="table" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="aside">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row);
            const isOpen = detailOf !== undefined && opened.includes(key);
            return (
              <Fragment key={key}>
                <tr>
                  {columns.map((column, index) => (
                    <td key={column.title} class={classOf(column)}>
                      {index === 0 && detailOf !== undefined ? (
                        <button
                          type="button"
                          class="disclosure"
                          aria-expanded={isOpen}
                          onClick={() => toggle(key)}
                        >
                          {column.cell(row)}
                        </button>
                      ) : (
                        column.cell(row)
                      )}
                    </td>
                  ))}
                </tr>
                {isOpen && (
                  <tr class="detail">
                    <td colSpan={columns.length}>
                      <div>{detailOf(row)}</div>
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
