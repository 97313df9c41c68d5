//! PURE. Which engine version is played, as a table of its differences (sections 7, 8, 10 and 11).
//! Everything that differs between builds is asked here by name, never by comparing versions.

use std::str::FromStr;

/// An engine version that the simulator can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// 0.15: no V4, `session/steer` still there, bare permission options, busy code 1308.
    V015,
    /// 0.16.5: V4 is there; a send in mid-turn is swallowed as steer, `session/stop` is ignored.
    V0165,
    /// 0.16.9: the newest.
    #[default]
    V0169,
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "0.15" | "0.15.2" => Ok(Self::V015),
            "0.16.5" => Ok(Self::V0165),
            "0.16.9" | "latest" => Ok(Self::V0169),
            other => Err(format!("unknown profile {other:?}: use 0.15, 0.16.5 or 0.16.9")),
        }
    }
}

/// What happens to a `session/send` while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusySend {
    /// Refused with -32010 for the whole turn.
    Refuse32010,
    /// Refused with 1308 for the whole turn.
    Refuse1308,
    /// Accepted as steer and dropped at the turn's end; refused with 1308 while the turn finishes.
    SwallowAsSteer,
}

impl Profile {
    /// The version as the engine would write it.
    pub fn version(self) -> &'static str {
        match self {
            Self::V015 => "0.15.2",
            Self::V0165 => "0.16.5",
            Self::V0169 => "0.16.9",
        }
    }

    /// Whether the V4 channel exists.
    pub fn has_v4(self) -> bool {
        self != Self::V015
    }

    /// Whether `turnId` stands on the event envelope (else inside the payload).
    pub fn turn_id_on_envelope(self) -> bool {
        self == Self::V0169
    }

    /// The key of a message's id in `info`.
    pub fn message_id_key(self) -> &'static str {
        if self == Self::V0169 { "messageId" } else { "id" }
    }

    /// The key of a tool part's call id.
    pub fn call_id_key(self) -> &'static str {
        if self == Self::V0169 { "callId" } else { "callID" }
    }

    /// See [`BusySend`].
    pub fn busy_send(self) -> BusySend {
        match self {
            Self::V015 => BusySend::Refuse1308,
            Self::V0165 => BusySend::SwallowAsSteer,
            Self::V0169 => BusySend::Refuse32010,
        }
    }

    /// Whether `session/stop` ends a turn whose model is streaming.
    pub fn stop_ends_streaming(self) -> bool {
        self != Self::V0165
    }

    /// Whether permission options carry their `response`.
    pub fn option_responses(self) -> bool {
        self != Self::V015
    }

    /// Whether `turn.terminal` follows completed and failed.
    pub fn turn_terminal(self) -> bool {
        self != Self::V0169
    }

    /// Whether steer events carry payloads (older builds leave them empty).
    pub fn steer_payloads(self) -> bool {
        self == Self::V0169
    }

    /// Whether `success` stays true for a command that fails.
    pub fn success_despite_exit_code(self) -> bool {
        self == Self::V0169
    }

    /// Whether `session/compact` is acknowledged at once and runs as a turn.
    pub fn compact_in_background(self) -> bool {
        self == Self::V0169
    }

    /// The provider's id, spelt as this build spells it.
    pub fn provider_id(self) -> &'static str {
        if self == Self::V0169 {
            "account:zai-individual-coding-plan"
        } else {
            "builtin:zai-coding-plan"
        }
    }

    /// Whether the method exists in this build; the others are answered with -32601.
    pub fn has_method(self, method: &str) -> bool {
        match method {
            "session/steer"
            | "session/rewind"
            | "session/rewindCascade"
            | "workspace/readState"
            | "workspace/updateProviderRegistry"
            | "prompt/enhance" => self == Self::V015,
            "runtime/capabilities" | "session/subagents" => self == Self::V0169,
            "provider/updateAccountConfig" => self != Self::V015,
            m if m.starts_with("v4/") => self.has_v4(),
            _ => true,
        }
    }
}
