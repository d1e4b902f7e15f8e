import { read } from "../api/use-operation.ts";

/**
 * Prints the receipt of a payment, as `coinslot payments receipt --html` writes it.
 *
 * @throws ApiError
 */
export async function printReceipt(id: string): Promise<void> {
  const { page } = await read("payments.receipt", { id });
  document.getElementById("receipt")?.remove();
  const frame = document.createElement("iframe");
  frame.id = "receipt";
  frame.title = "Receipt";
  frame.setAttribute("sandbox", "allow-same-origin allow-modals");
  // In the page, and out of sight: a frame that is not displayed prints nothing.
  frame.className = "aside";
  frame.tabIndex = -1;
  frame.ariaHidden = "true";
  frame.addEventListener("load", () => frame.contentWindow?.print(), { once: true });
  frame.srcdoc = withNonce(page);
  document.body.append(frame);
}

/** The frame inherits the policy of this page, under which a style counts by its nonce. */
function withNonce(page: string): string {
  const { nonce = "" } = document.querySelector<HTMLMetaElement>('[property="csp-nonce"]') ?? {};
  return page.replace("<style>", `<style nonce="${nonce}">`);
}
