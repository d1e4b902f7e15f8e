import type { PageData } from "../src/page-data.ts";
import type { Texts } from "../src/texts/texts.ts";
import { element } from "./element.ts";

/** A text of the page, its marks filled. */
export function fill(text: string, values: Readonly<Record<string, string>> = {}): string {
  return text.replace(/\{(\w+)\}/g, (mark, name: string) => values[name] ?? mark);
}

/** An element of the document that the server wrote. */
export function part(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`No element "${id}"`);
  return found;
}

/** A button of a message, by the name of its text. */
export type Actions = Partial<Record<keyof Texts, () => void>>;

/** Look of a message: while work goes on, at an end that is good or bad, or else. */
export type Mood = "busy" | "good" | "bad" | "plain";

/**
 * Replaces the message of the page, and gives it the focus: its first button, unless all is done.
 */
export function say(
  { texts }: Pick<PageData, "texts">,
  {
    mood,
    lines,
    actions = {},
  }: { mood: Mood; lines: readonly (string | Node)[]; actions?: Actions },
): void {
  const buttons = Object.entries(actions).map(([name, act]) => {
    const button = element("button", { type: "button" }, texts[name as keyof Texts]);
    button.addEventListener("click", act);
    return button;
  });
  const all: Node[] = lines.map((line) =>
    typeof line === "string" ? element("p", {}, line) : line,
  );
  if (buttons.length > 0) all.push(element("p", { class: "actions" }, ...buttons));
  const status = part("status");
  status.className = mood;
  status.replaceChildren(...all);
  status.tabIndex = -1;
  // After a purchase, the next key press must not begin another one.
  const focused = mood === "good" ? undefined : buttons[0];
  (focused ?? status).focus();
}
