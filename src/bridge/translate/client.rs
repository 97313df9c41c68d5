//! PURE. What a client can show, read once from its `initialize`. Nothing else decides by a
//! client's name; the translation asks these fields.

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

/// How a client is told of turns and questions beside the standard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Signals {
    /// It is not.
    #[default]
    None,
    /// `_zcode/…`: the client declared `_meta.zcode.signals`.
    Standard,
    /// `$/zcode/…`: clients of the TypeScript bridge.
    Legacy,
}

/// The abilities of a client that change what it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent ability of the client, not a state"
)]
pub struct ClientTraits {
    /// `clientInfo.name`, lower-cased.
    pub name: String,
    /// `_meta.terminal_output`: shows streamed terminals (Zed's convention).
    pub terminal_output: bool,
    /// `_meta.terminal_output_delta`: the same under the key that `JetBrains` uses.
    pub terminal_output_delta: bool,
    /// `elicitation.form`.
    pub elicitation_form: bool,
    /// `elicitation.url`.
    pub elicitation_url: bool,
    /// Renders a long markdown description of a form field, so that a plan can be approved there.
    pub plan_form: bool,
    /// The martty terminal, which shows `rawOutput` in place of content.
    pub martty: bool,
    /// `session.notices`.
    pub notices: bool,
    /// `session.compaction`.
    pub compaction: bool,
    /// `plan`: understands `plan_update` and `plan_removed`.
    pub plan: bool,
    /// `subagents`.
    pub subagents: bool,
    /// `session.configOptions.boolean`.
    pub boolean_options: bool,
    /// Can be sent the text of subagents, which is marked as theirs: `_meta["subagent-transcript"]`
    /// says so; clients known to mix it into the main answer are not sent it.
    pub subagent_transcript: bool,
    /// Notifications about turns and questions.
    pub signals: Signals,
}

impl ClientTraits {
    /// Reads the abilities from `initialize`.
    pub fn from_initialize(request: &acp::InitializeRequest) -> Self {
        let name =
            request.client_info.as_ref().map(|info| info.name.to_lowercase()).unwrap_or_default();
        let caps = &request.client_capabilities;
        let flag = |key: &str| caps.meta.as_ref().is_some_and(|meta| truthy(meta.get(key)));
        let session = caps.session.as_ref();
        let elicitation = caps.elicitation.as_ref();
        let elicitation_form = elicitation.is_some_and(|e| e.form.is_some());
        let martty = name.contains("martty");
        Self {
            terminal_output: flag("terminal_output"),
            terminal_output_delta: flag("terminal_output_delta"),
            elicitation_form,
            elicitation_url: elicitation.is_some_and(|e| e.url.is_some()),
            plan_form: elicitation_form && renders_plan(&name, caps.meta.as_ref()),
            martty,
            notices: session.is_some_and(|s| s.notices.is_some()),
            compaction: session.is_some_and(|s| s.compaction.is_some()),
            plan: caps.plan.is_some(),
            subagents: caps.subagents.is_some(),
            boolean_options: session
                .and_then(|s| s.config_options.as_ref())
                .is_some_and(|o| o.boolean.is_some()),
            subagent_transcript: transcript(&name, caps.meta.as_ref()),
            signals: signals(&name, caps.meta.as_ref()),
            name,
        }
    }

    /// Whether a subagent's text may be sent with the mark of its parent card. A client that asked for it knows the mark;
    /// others pass it over at worst, but Zed shows every chunk as the main answer.
    pub fn takes_marked_text(&self) -> bool {
        self.subagent_transcript || !self.name.starts_with("zed")
    }

    /// True when either spelling of the streamed-terminal convention was declared.
    pub fn streams_terminal(&self) -> bool {
        self.terminal_output || self.terminal_output_delta
    }

    /// The `_meta` key that terminal output goes under.
    pub fn terminal_key(&self) -> &'static str {
        if self.terminal_output { "terminal_output" } else { "terminal_output_delta" }
    }
}

/// Zed declares forms but shows a field's description as a plain label, so a plan would lose its
/// markdown there; `_meta.zcode.planForm` overrides the guess either way.
fn renders_plan(name: &str, meta: Option<&acp::Meta>) -> bool {
    let said =
        meta.and_then(|m| m.get("zcode")).and_then(|z| z.get("planForm")).and_then(Value::as_bool);
    said.unwrap_or_else(|| !name.starts_with("zed"))
}

/// Strict client libraries refuse methods they do not know, so only clients that do are told.
fn signals(name: &str, meta: Option<&acp::Meta>) -> Signals {
    let said = meta.and_then(|m| m.get("zcode")).and_then(|z| z.get("signals"));
    if said.and_then(Value::as_bool) == Some(true) {
        return Signals::Standard;
    }
    let legacy = ["martty", "zcode-acp-remote"].iter().any(|known| name.contains(known));
    if legacy { Signals::Legacy } else { Signals::None }
}

/// Clients that ignore the mark and would show a subagent's words as the agent's own.
fn transcript(name: &str, meta: Option<&acp::Meta>) -> bool {
    let said = meta.and_then(|m| m.get("subagent-transcript")).and_then(Value::as_bool);
    said.unwrap_or_else(|| {
        let mixes = ["zed", "acpx", "toad", "jetbrains", "intellij"];
        !mixes.iter().any(|known| name.starts_with(known))
    })
}

fn truthy(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(b)) => *b,
        Some(Value::Object(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn traits(value: Value) -> ClientTraits {
        ClientTraits::from_initialize(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_bare_client_has_no_abilities() {
        let got = traits(json!({"protocolVersion": 1}));
        let bare = ClientTraits { subagent_transcript: true, ..ClientTraits::default() };
        assert_eq!(got, bare);
    }

    #[test]
    fn abilities_are_read_from_their_exact_paths() {
        let got = traits(
            json!({"protocolVersion": 1, "clientInfo": {"name": "Martty", "version": "1"},
            "clientCapabilities": {"plan": {}, "subagents": {}, "elicitation": {"form": {}, "url": {}},
                "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
                "_meta": {"terminal_output": true, "subagent-transcript": true}}}),
        );
        assert!(got.martty && got.plan && got.subagents && got.notices && got.compaction);
        assert!(got.boolean_options && got.subagent_transcript && got.terminal_output);
        assert!(got.elicitation_form && got.elicitation_url && got.plan_form);
        assert_eq!(got.terminal_key(), "terminal_output");
    }

    #[test]
    fn a_plan_goes_to_forms_unless_the_client_is_zed_or_says_otherwise() {
        for (name, meta, want) in [
            ("zed", json!({}), false),
            ("Zed Preview", json!({}), false),
            ("zcode-acp-tui", json!({}), true),
            ("other", json!({}), true),
            ("zed", json!({"zcode": {"planForm": true}}), true),
            ("other", json!({"zcode": {"planForm": false}}), false),
        ] {
            let got =
                traits(json!({"protocolVersion": 1, "clientInfo": {"name": name, "version": "1"},
                "clientCapabilities": {"elicitation": {"form": {}}, "_meta": meta}}));
            assert_eq!(got.plan_form, want, "{name} {meta}");
        }
        assert!(
            !traits(
                json!({"protocolVersion": 1, "clientInfo": {"name": "martty", "version": "1"}})
            )
            .plan_form
        );
    }

    #[test]
    fn a_subagents_text_goes_to_clients_that_can_tell_it_apart() {
        for (name, meta, want) in [
            ("new-client", json!({}), true),
            ("zed", json!({}), false),
            ("acpx", json!({}), false),
            ("zed", json!({"subagent-transcript": true}), true),
            ("martty", json!({"subagent-transcript": false}), false),
        ] {
            let got = traits(
                json!({"protocolVersion": 1, "clientInfo": {"name": name, "version": "1"}, "clientCapabilities": {"_meta": meta}}),
            );
            assert_eq!(got.subagent_transcript, want, "{name} {meta}");
        }
    }

    #[test]
    fn an_empty_elicitation_object_advertises_no_mode() {
        let got = traits(json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": {}}}));
        assert!(!got.elicitation_form && !got.elicitation_url);
    }
}
