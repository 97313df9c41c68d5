//! PURE. Mappings that the translation layer is about to take over; each is the least that a turn
//! needs. Removed piece by piece as `bridge::translate` grows.

pub(crate) mod stop_reason {
    use agent_client_protocol::v1::schema as acp;
    pub(crate) fn from_result(kind: Option<&str>) -> acp::StopReason {
        match kind {
            Some("cancelled") => acp::StopReason::Cancelled,
            Some("error_max_turns" | "error_max_tool_calls") => acp::StopReason::MaxTurnRequests,
            Some("error_max_budget") => acp::StopReason::MaxTokens,
            _ => acp::StopReason::EndTurn,
        }
    }
}
pub(crate) mod turn_error {
    use crate::bridge::engine::event::TurnFailed;
    use crate::bridge::translate::ClientTraits;
    use agent_client_protocol::v1::schema as acp;
    use agent_client_protocol::{Error as AcpError, ErrorCode};
    use serde_json::Value;
    #[derive(Debug)]
    pub(crate) struct TurnProblem {
        pub(crate) transient: bool,
        pub(crate) retry_after_ms: Option<u64>,
        pub(crate) message: String,
    }
    pub(crate) fn turn_failed(failed: &TurnFailed) -> TurnProblem {
        let text = |v: Option<&Value>| v.and_then(Value::as_str).map(str::to_owned);
        let e = &failed.error;
        let message = text(e.get("underlyingErrorMessage"))
            .or_else(|| text(e.get("message")))
            .or_else(|| text(Some(e)))
            .unwrap_or_else(|| "the turn failed".into());
        TurnProblem {
            transient: e.get("retryable").and_then(Value::as_bool).unwrap_or(false),
            retry_after_ms: None,
            message,
        }
    }
    impl TurnProblem {
        pub(crate) fn into_acp(self) -> AcpError {
            AcpError::new(ErrorCode::INTERNAL_ERROR, self.message)
        }
        pub(crate) fn retry_notice(
            &self,
            attempt: usize,
            of: usize,
            traits: &ClientTraits,
        ) -> acp::SessionUpdate {
            super::notice::warning(
                &format!("{} - trying again ({attempt}/{of})", self.message),
                traits,
            )
        }
    }
}
pub(crate) mod notice {
    pub(crate) fn reply(text: &str, id: &str) -> acp::SessionUpdate {
        acp::SessionUpdate::AgentMessageChunk(
            acp::ContentChunk::new(acp::ContentBlock::from(text.to_owned()))
                .message_id(acp::MessageId::from(id.to_owned())),
        )
    }
    use crate::bridge::translate::ClientTraits;
    use agent_client_protocol::v1::schema as acp;
    pub(crate) fn warning(text: &str, traits: &ClientTraits) -> acp::SessionUpdate {
        if traits.notices {
            return acp::SessionUpdate::Notice(acp::Notice::new(
                acp::NoticeSeverity::Warning,
                text,
            ));
        }
        acp::SessionUpdate::AgentThoughtChunk(acp::ContentChunk::new(acp::ContentBlock::from(
            text.to_owned(),
        )))
    }
}
pub(crate) mod title {
    use crate::bridge::engine::event::TitleUpdated;
    use agent_client_protocol::v1::schema as acp;
    pub(crate) struct Adopted {
        pub(crate) title: String,
        pub(crate) by_user: bool,
    }
    pub(crate) fn from_prompt(text: &str) -> Option<String> {
        let line = text.lines().map(str::trim).find(|l| !l.is_empty())?;
        Some(line.chars().take(80).collect())
    }
    pub(crate) fn adopt(pushed: &TitleUpdated) -> Option<Adopted> {
        let by_user = match pushed.source.as_deref() {
            Some("custom") => true,
            Some("generated") => false,
            _ => return None,
        };
        Some(Adopted { title: pushed.title.trim().chars().take(80).collect(), by_user })
    }
    pub(crate) fn update(text: &str, now: u64) -> acp::SessionUpdate {
        acp::SessionUpdate::SessionInfoUpdate(
            acp::SessionInfoUpdate::new().title(text.to_owned()).updated_at(iso_time(now)),
        )
    }
    pub(crate) fn iso_time(ms: u64) -> String {
        let secs = i64::try_from(ms / 1000).unwrap_or(0);
        let (days, rest) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let (d, m) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
        let y = yoe + era * 400 + i64::from(m <= 2);
        format!(
            "{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{:03}Z",
            rest / 3600,
            rest / 60 % 60,
            rest % 60,
            ms % 1000
        )
    }
}
pub(crate) mod usage {
    use agent_client_protocol::v1::schema as acp;
    use serde_json::Value;
    pub(crate) fn of_turn(base: &Value, after: &Value) -> Option<acp::Usage> {
        let n = |v: &Value, k: &str| v.get(k).and_then(Value::as_u64);
        let d = |k: &str| n(after, k).map(|a| a.saturating_sub(n(base, k).unwrap_or(0)));
        let (read, write) = (d("cacheReadTokens"), d("cacheCreationTokens"));
        let input = d("inputTokens")?.saturating_sub(read.unwrap_or(0) + write.unwrap_or(0));
        Some(
            acp::Usage::new(d("totalTokens")?, input, d("outputTokens")?)
                .thought_tokens(d("reasoningTokens"))
                .cached_read_tokens(read)
                .cached_write_tokens(write),
        )
    }
    pub(crate) fn reported(v: &Value) -> Option<acp::Usage> {
        let n = |k: &str| v.get(k).and_then(Value::as_u64);
        let (read, write) = (n("cacheReadTokens"), n("cacheWriteTokens"));
        let input = n("inputTokens")?.saturating_sub(read.unwrap_or(0) + write.unwrap_or(0));
        Some(
            acp::Usage::new(n("totalTokens")?, input, n("outputTokens")?)
                .thought_tokens(n("reasoningTokens"))
                .cached_read_tokens(read)
                .cached_write_tokens(write),
        )
    }
}

pub(crate) mod mcp {
    use agent_client_protocol::v1::schema as acp;
    use serde_json::Value;
    pub(crate) fn to_engine(servers: &[acp::McpServer]) -> Result<Vec<Value>, String> {
        servers.iter().map(|s| serde_json::to_value(s).map_err(|e| e.to_string())).collect()
    }
}
pub(crate) mod replay {
    use crate::bridge::translate::ClientTraits;
    use agent_client_protocol::v1::schema as acp;
    use serde_json::value::RawValue;
    pub(crate) fn count(_r: &RawValue) -> usize {
        0
    }
    pub(crate) fn messages(
        _r: &RawValue,
        _l: Option<usize>,
        _t: &ClientTraits,
        _c: &str,
    ) -> Result<Vec<acp::SessionUpdate>, String> {
        Ok(Vec::new())
    }
}
