import type { PageForm } from "@coinslot/protocol";
import { quotableUrl } from "../discovery/quotable-url.ts";

/** Longer ones are not readable on a page. */
const maxLength = 2_048;

/** The command that pays for a request; `undefined` where its body is not at hand, or too long. */
export function payCommand(options: {
  method: string;
  url: string;
  form: PageForm;
}): string | undefined {
  const { method, url, form } = options;
  const command = ["npx", "@coinslot/cli", "pay", `"${quotableUrl(url)}"`];
  if (form.state === "lost") return undefined;
  if (form.state === "kept") {
    const type = "content-type: application/x-www-form-urlencoded";
    command.push("--header", `"${type}"`, "--data", `"${quotableUrl(form.body)}"`);
  }
  if (method !== (form.state === "kept" ? "POST" : "GET")) command.push("--method", method);
  const text = command.join(" ");
  return text.length <= maxLength ? text : undefined;
}
