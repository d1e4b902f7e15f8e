import type { PageData } from "../src/page-data.ts";

/** Returns whether a navigation can repeat the request, byte by byte. */
export function canOpen({ form }: PageData): boolean {
  return form.state !== "kept" || new URLSearchParams(form.body).toString() === form.body;
}

/** Repeats the request of this page as a navigation, which opens the answer. */
export function openAnswer({ method, form }: PageData): void {
  if (method === "GET") {
    location.reload();
    return;
  }
  const made = document.createElement("form");
  made.method = "post";
  made.action = location.href;
  const pairs = new URLSearchParams(form.state === "kept" ? form.body : "");
  for (const [name, value] of pairs) {
    const input = document.createElement("input");
    input.type = "hidden";
    input.name = name;
    input.value = value;
    made.append(input);
  }
  document.body.append(made);
  // A field called "submit" would take the method's place.
  HTMLFormElement.prototype.submit.call(made);
}
