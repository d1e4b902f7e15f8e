import { useState } from "preact/hooks";

/** A text that a click copies. `shown` is its short form. */
export function Copy({
  text,
  shown = text,
  label,
}: {
  text: string;
  shown?: string;
  label: string;
}) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), 1500);
  };
  return (
    <button
      class="copy"
      type="button"
      title={text}
      aria-label={`${label}: ${shown}, copy`}
      onClick={copy}
    >
      <code>{isCopied ? "copied" : shown}</code>
    </button>
  );
}
