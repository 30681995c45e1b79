// The fused plan as a picture: which cards share a pass over memory.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ask, closeDialog, dialog, state, tab } from "../store";
import { Icon } from "../ui/icons";
import { Dialog } from "../ui/parts";

interface Step {
  kind: "pass" | "model";
  stages: string[];
  bytes: number | null;
  ms: number | null;
}

export function PlanDialog(): JSX.Element {
  const steps = useSignal<Step[] | null>(null);
  const text = useSignal("");
  useEffect(() => {
    void ask("plan").then((reply) => {
      if (!reply) {
        closeDialog("plan");
        return;
      }
      steps.value = reply.steps as unknown as Step[];
      text.value = String(reply.text ?? "");
    });
  }, []);
  const shown = steps.value ?? [];
  const passes = shown.filter((each) => each.kind === "pass").length;
  const cards = state.value.chain.filter((each) => each.on).length;
  return (
    <Dialog title="The fused plan" class="plan" onClose={() => (dialog.value = null)}>
      {steps.value ? (
        <p class="quiet">
          {cards === 1 ? "1 card runs" : `${cards} cards run`} in {passes === 1 ? "one pass" : `${passes} passes`} over the picture.
          Stages of one pass never store what is between them.
        </p>
      ) : (
        <p class="quiet">Asking for the plan…</p>
      )}
      {steps.value ? (
        <div class="flow" role="img" aria-label={describe(shown)} data-testid="plan">
          <span class="flow-end">
            <Icon name="image" size={16} /> {tab.value?.title ?? "Source"}
          </span>
          {shown.map((step, index) => (
            <StepBox key={index} step={step} number={shown.slice(0, index + 1).filter((each) => each.kind === "pass").length} />
          ))}
          <span class="flow-arrow" />
          <span class="flow-end">
            <Icon name="spark" size={16} /> Result
          </span>
        </div>
      ) : null}
      {text.value ? (
        <details class="plan-details">
          <summary>As text</summary>
          <pre class="plan-text">{text.value}</pre>
        </details>
      ) : null}
    </Dialog>
  );
}

function StepBox({ step, number }: { step: Step; number: number }): JSX.Element {
  const facts = [
    step.stages.length > 1 ? `${step.stages.length} stages fused` : "",
    step.bytes ? `${(step.bytes / 1e6).toFixed(1)} MB moved` : "",
    step.ms !== null && step.ms !== undefined ? `${step.ms.toFixed(2)} ms` : "",
  ].filter(Boolean);
  return (
    <>
      <span class="flow-arrow" />
      <div class={`flow-step ${step.kind}`}>
        <header>{step.kind === "model" ? "Model" : `Pass ${number}`}</header>
        <div class="flow-stages">
          {step.stages.map((stage, index) => (
            <span key={index} class="flow-stage">
              {stage.replaceAll("_", " ")}
            </span>
          ))}
        </div>
        {facts.length ? <footer>{facts.join(" · ")}</footer> : null}
      </div>
    </>
  );
}

function describe(steps: Step[]): string {
  const parts = steps.map((step, index) => `${step.kind} ${index + 1}: ${step.stages.join(", ")}`);
  return `The fused plan. ${parts.join("; ")}.`;
}
