import type { ApiError } from "../api/api-error.ts";

interface ConfirmationProps {
  error: ApiError | undefined;
  value: string;
  onInput: (text: string) => void;
}

/** Asks for the key, or for the code of the terminal, where an answer has asked for it. */
export function Confirmation({ error, value, onInput }: ConfirmationProps) {
  if (error?.code !== "confirmation_needed" && error?.code !== "wrong_confirmation") return null;
  return (
    <label>
      <span>{error.details.confirmation === "code" ? "Code of the terminal" : "Confirmation"}</span>
      <input
        name="confirmation"
        type="password"
        autocomplete="off"
        required
        value={value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
    </label>
  );
}
