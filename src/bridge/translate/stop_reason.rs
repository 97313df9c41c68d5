//! PURE. How a turn ended: the engine's `resultType` as an ACP stop reason. Called by the session
//! machine.

use agent_client_protocol::v1::schema as acp;

use crate::bridge::engine::event::TurnCompleted;

/// How a prompt is answered when its turn completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With this stop reason.
    Stop(acp::StopReason),
    /// With an error: the turn failed although it "completed".
    Error,
}

/// The ending that a `turn.completed` means. No `resultType` is a success; an unknown one is told
/// to the user by [`remark`] and ends the turn.
pub fn of(turn: &TurnCompleted) -> Ending {
    match turn.result_type.as_deref() {
        Some("cancelled" | "canceled" | "interrupted" | "aborted") => {
            Ending::Stop(acp::StopReason::Cancelled)
        }
        Some("error_during_execution" | "error" | "failed") => Ending::Error,
        Some(
            "error_max_turns"
            | "max_turns"
            | "error_max_tool_calls"
            | "max_tool_calls"
            | "error_max_budget"
            | "max_budget"
            | "max_turn_requests",
        ) => Ending::Stop(acp::StopReason::MaxTurnRequests),
        Some("error_max_tokens" | "max_tokens" | "error_max_output_tokens" | "length") => {
            Ending::Stop(acp::StopReason::MaxTokens)
        }
        Some(
            "refusal" | "error_refusal" | "refused" | "content_filter" | "error_content_filter",
        ) => Ending::Stop(acp::StopReason::Refusal),
        _ => Ending::Stop(acp::StopReason::EndTurn),
    }
}

/// What the user is told about an ending that is neither a success nor their own cancel.
pub fn remark(turn: &TurnCompleted) -> Option<String> {
    let kind = turn.result_type.as_deref()?;
    let words = match kind {
        "success" | "cancelled" | "canceled" | "interrupted" | "aborted" => return None,
        "error_max_turns" | "max_turns" => {
            "The turn ended at the engine's limit of model requests. Send a message to go on."
        }
        "error_max_tool_calls" | "max_tool_calls" => {
            "The turn ended at the engine's limit of tool calls. Send a message to go on."
        }
        "error_max_budget" | "max_budget" => {
            "The turn ended at the engine's budget limit. Send a message to go on."
        }
        "error_max_tokens" | "max_tokens" | "error_max_output_tokens" | "length" => {
            "The answer was cut at the model's token limit. Send a message to go on."
        }
        "refusal" | "error_refusal" | "refused" | "content_filter" | "error_content_filter" => {
            "The model refused this request."
        }
        other => return Some(format!("The turn ended with {other}.")),
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_types_map_to_stop_reasons() {
        let stop = Ending::Stop;
        for (kind, want, told) in [
            (None, stop(acp::StopReason::EndTurn), false),
            (Some("success"), stop(acp::StopReason::EndTurn), false),
            (Some("cancelled"), stop(acp::StopReason::Cancelled), false),
            (Some("error_max_turns"), stop(acp::StopReason::MaxTurnRequests), true),
            (Some("error_max_tool_calls"), stop(acp::StopReason::MaxTurnRequests), true),
            (Some("error_max_budget"), stop(acp::StopReason::MaxTurnRequests), true),
            (Some("error_max_tokens"), stop(acp::StopReason::MaxTokens), true),
            (Some("refusal"), stop(acp::StopReason::Refusal), true),
            (Some("error_during_execution"), Ending::Error, true),
            (Some("something_new"), stop(acp::StopReason::EndTurn), true),
        ] {
            let turn =
                TurnCompleted { result_type: kind.map(str::to_owned), ..TurnCompleted::default() };
            assert_eq!((of(&turn), remark(&turn).is_some()), (want, told), "{kind:?}");
        }
    }
}
