//! PURE. One loaded session: what it stores, what runs in it, and how it looks to a host (snapshot,
//! `SessionInfo`, section 3).

use super::catalog;
use super::events::{EventLog, Origin};
use super::ids::Ids;
use super::legacy::Legacy;
use super::options::Options;
use super::player::{Beat, Call, Lane, Player, TaskSpec};
use super::record::Recorder;
use super::script::Steps;
use super::store::Stored;
use super::v4::Topic;
use super::v4::rows::Rows;
use super::wire::Wire;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// Why a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKind {
    Prompt,
    Background,
    Goal,
    Compact,
}

impl TurnKind {
    /// `turn.started.inputSource`; absent for a real prompt.
    pub(super) fn input_source(self) -> Option<&'static str> {
        match self {
            Self::Prompt => None,
            Self::Background => Some("background_task"),
            Self::Goal => Some("goal-continuation"),
            Self::Compact => Some("compact"),
        }
    }
}

/// Where a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Accepted; `turn.started` is still to come.
    Accepted,
    Running,
    /// Nothing more is played; it ends with this result when its time comes.
    Ending(&'static str),
}

/// A player and when its next action is due.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) player: Player,
    pub(super) next: Option<Beat>,
    pub(super) due: u64,
}

impl Runner {
    pub(super) fn new(player: Player) -> Self {
        Self { player, next: None, due: 0 }
    }

    /// Takes the next action from the player; false when there is none now.
    pub(super) fn fetch(&mut self, options: &Options, ids: &mut Ids, now: u64) -> bool {
        if self.next.is_none() {
            self.next = self.player.next(ids);
            let wait = self.next.as_ref().map_or(0, |beat| options.scaled(beat.wait));
            // Counted from when the last one was due: a slow reader must not slow the script down.
            self.due = if self.due == 0 || self.due + 2_000 < now { now } else { self.due } + wait;
        }
        self.next.is_some()
    }
}

/// A turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) number: u64,
    pub(super) kind: TurnKind,
    pub(super) input: String,
    pub(super) input_id: Option<String>,
    pub(super) query_id: Option<String>,
    /// The V4 command it came by.
    pub(super) command_id: Option<String>,
    pub(super) execution_id: String,
    pub(super) phase: Phase,
    /// When an accepted turn starts, or an ending one ends.
    pub(super) due: u64,
    pub(super) runner: Runner,
    pub(super) started: u64,
    pub(super) user_message: String,
    pub(super) message: String,
    pub(super) response: String,
    pub(super) output_chars: u64,
    pub(super) pending_chars: u64,
    pub(super) requests: u64,
    pub(super) tool_count: u64,
    pub(super) files: Vec<String>,
    pub(super) open_lane: Option<Lane>,
    pub(super) open_calls: Vec<Arc<Call>>,
    pub(super) steps: u64,
    /// Waits for provider headers under this request id.
    pub(super) headers: Option<String>,
    /// The host granted headers for the request that is due.
    pub(super) headers_granted: bool,
    pub(super) evict: bool,
    /// Title that the script suggests.
    pub(super) title: Option<String>,
    /// When a waiting guide breaks into the text.
    pub(super) guide_at: Option<u64>,
}

/// Work beside the turn.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) spec: TaskSpec,
    pub(super) runner: Runner,
    pub(super) started: u64,
    pub(super) output: String,
    pub(super) errors: String,
}

/// A turn that the engine will start by itself.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) input: String,
    pub(super) steps: Steps,
}

/// An input that waits behind the turn (V4).
#[derive(Debug, Clone)]
pub(super) struct QueueItem {
    pub(super) id: String,
    pub(super) command_id: String,
    pub(super) text: String,
    pub(super) requested: String,
    pub(super) admitted: String,
    pub(super) steer: &'static str,
    pub(super) reason: Option<String>,
    pub(super) created: u64,
}

/// A loaded session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) stored: Stored,
    pub(super) log: EventLog,
    pub(super) legacy: Legacy,
    pub(super) recorder: Recorder,
    pub(super) topic: Topic,
    pub(super) rows: Rows,
    pub(super) turn: Option<Turn>,
    pub(super) tasks: Vec<Task>,
    pub(super) notices: VecDeque<Notice>,
    pub(super) queue: Vec<QueueItem>,
    pub(super) auto_drain: bool,
    /// Whether its row is in the database; a created session has none until its first input.
    pub(super) row_at: Option<u64>,
    pub(super) last_used: u64,
    /// Reads of the history that still return a prefix.
    pub(super) hydrating: u64,
    pub(super) hydration_reads: u64,
    pub(super) api_retry: Option<Value>,
    pub(super) last_error: Option<Value>,
    /// Prompts that 0.16.5 swallowed.
    pub(super) swallowed: u64,
    pub(super) operation: u64,
    /// A subagent that still works.
    pub(super) is_played: bool,
}

impl Session {
    /// Loads what is stored. `persisted`: its row is in the database already.
    pub(super) fn new(stored: Stored, persisted: bool, now: u64, epoch: String) -> Self {
        let mut topic = Topic::new(format!("conversation/{}", stored.id), epoch);
        let rows = Rows::restore(&mut topic, &stored.messages);
        Self {
            topic,
            rows,
            log: EventLog::default(),
            legacy: Legacy::default(),
            recorder: Recorder::default(),
            turn: None,
            tasks: Vec::new(),
            notices: VecDeque::new(),
            queue: Vec::new(),
            auto_drain: true,
            row_at: persisted.then_some(now),
            last_used: now,
            hydrating: 0,
            hydration_reads: 0,
            api_retry: None,
            last_error: None,
            swallowed: 0,
            operation: 0,
            is_played: false,
            stored,
        }
    }

    /// Sends an event of this session; `in_turn` marks it with the running turn's id.
    pub(super) fn event(&mut self, wire: &mut Wire, kind: &str, payload: Value) {
        let turn_id =
            self.turn.as_ref().filter(|t| t.phase != Phase::Accepted).map(|t| t.id.as_str());
        let origin =
            Origin { session: &self.stored.id, trace: &self.stored.trace_id, turn: turn_id };
        self.log.push(wire, &mut self.stored.event_seq, origin, kind, payload);
    }

    /// Sends a `state.updated` broadcast under the next revision.
    pub(super) fn state(&mut self, wire: &mut Wire, reason: &str, patch: &Value) {
        self.stored.revision += 1;
        let params = json!({
            "type": "state.updated", "scope": "session", "sessionId": self.stored.id,
            "revision": self.stored.revision, "reason": reason, "patch": patch,
        });
        wire.notify("state.updated", &params);
    }

    /// Whether a turn holds the prompt lock.
    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// The context window of the current model.
    pub(super) fn window(&self) -> u64 {
        catalog::selected(self.stored.model.as_ref()).map_or(200_000, |m| m.context)
    }

    /// The mode that is in force: plan mode of the agent's own wins.
    pub(super) fn mode(&self) -> &str {
        if self.stored.plan_mode { "plan" } else { &self.stored.mode }
    }

    /// Which status the projection shows.
    pub(super) fn status(&self) -> &'static str {
        match &self.turn {
            Some(turn) if turn.runner.player.is_waiting() => "waiting",
            Some(_) => "running",
            None if self.last_error.is_some() => "error",
            None => "idle",
        }
    }

    /// `SessionInfo`.
    pub(super) fn info(&self) -> Value {
        info(&self.stored, self.status())
    }

    /// `settings` of a snapshot; `full` lists every model, else only the current one.
    pub(super) fn settings(&self, wire: &Wire, full: bool) -> Value {
        let profile = wire.options.profile;
        let current = self.stored.model.as_ref();
        let model = catalog::selected(current);
        let available: Vec<Value> = catalog::MODELS
            .iter()
            .filter(|m| full || model.is_some_and(|c| c.id == m.id))
            .map(|m| catalog::available(profile, m))
            .collect();
        let mut models = json!({ "available": available });
        if let (Some(map), Some(current)) = (models.as_object_mut(), current) {
            map.insert("current".to_owned(), current.clone());
            map.insert("lastUsed".to_owned(), current.clone());
        }
        let levels = model.filter(|m| !m.levels.is_empty());
        let mut thought = json!({
            "enabled": levels.is_some(),
            "available": levels.map_or_else(|| json!([]), catalog::levels),
        });
        if let (Some(map), Some(model)) = (thought.as_object_mut(), levels) {
            map.insert("defaultLevel".to_owned(), json!(model.default_level));
            if let Some(level) = &self.stored.thought_level {
                map.insert("current".to_owned(), Value::from(level.as_str()));
            }
        }
        json!({
            "model": models,
            "thoughtLevel": thought,
            "mode": {"current": self.stored.mode},
            "permission": {"mode": self.stored.mode, "rulesRevision": self.stored.allowed.len()},
        })
    }

    /// The whole snapshot.
    pub(super) fn snapshot(
        &self,
        wire: &Wire,
        full: bool,
        message_limit: Option<usize>,
        pending: &[Value],
    ) -> Value {
        let running = self.turn.as_ref().filter(|t| t.phase != Phase::Accepted);
        let skip = message_limit.map_or(0, |n| self.stored.messages.len().saturating_sub(n));
        let mut out = json!({
            "protocol": {"name": "ZCode Protocol", "version": 1},
            "session": self.info(),
            "settings": self.settings(wire, full),
            "projection": {
                "sessionId": self.stored.id,
                "status": self.status(),
                "mode": self.stored.mode,
                "turnCount": self.stored.turn_count,
                "totalTokenCount": self.stored.usage.input + self.stored.usage.output,
                "contextUsed": self.stored.context_used.unwrap_or(0),
                "contextWindow": 200_000,
                "currentTurnId": running.map(|t| t.id.as_str()),
                "pendingPermissions": pending,
                "activeToolCalls": running.map_or_else(Vec::new, |t| t.open_calls.iter().map(|c| json!({"toolCallId": c.id, "toolName": c.name})).collect()),
                "backgroundJobs": self.tasks.iter().map(|t| json!({"taskId": t.spec.task_id, "status": "running", "description": t.spec.description})).collect::<Vec<_>>(),
                "lastError": self.last_error,
            },
            "runtime": {
                "eventSeq": self.stored.event_seq,
                "stateRevision": self.stored.revision,
                "activeTurnId": running.map(|t| t.id.as_str()),
                "activeTurnKind": running.map(|t| if t.kind == TurnKind::Compact { "compact" } else { "regular" }),
                "pendingRequestIds": pending.iter().filter_map(|p| p.get("requestId")).collect::<Vec<_>>(),
                "apiRetry": self.api_retry,
                "contextUsage": self.stored.context_used.map(|used| self.context_usage(used)),
            },
            "messages": self.stored.messages.iter().skip(skip).collect::<Vec<_>>(),
            "todos": self.stored.todos,
        });
        if full && let Some(map) = out.as_object_mut() {
            map.insert("slashCommands".to_owned(), catalog::slash_commands());
        }
        for key in ["projection", "runtime"] {
            if let Some(Value::Object(map)) = out.get_mut(key) {
                map.retain(|_, value| !value.is_null());
            }
        }
        out
    }

    /// `runtime.contextUsage`.
    pub(super) fn context_usage(&self, used: u64) -> Value {
        let cached = used * 4 / 5;
        json!({
            "used": used,
            "size": self.window(),
            "cost": null,
            "cache": {"inputTokens": used - cached, "cacheReadTokens": cached, "cacheWriteTokens": 0, "hitRate": 0.8},
            "breakdown": [
                {"source": "system_prompt", "chars": 30_000},
                {"source": "tools", "chars": 16_000},
                {"source": "messages", "chars": used.saturating_mul(4).saturating_sub(46_000)},
            ],
        })
    }
}

/// `SessionInfo` of a stored session.
pub(super) fn info(stored: &Stored, status: &str) -> Value {
    let mut out = json!({
        "sessionId": stored.id,
        "workspace": stored.workspace,
        "parentSessionId": stored.parent,
        "traceId": stored.trace_id,
        "sessionKind": stored.kind,
        "title": stored.title,
        "titleSource": stored.title_source,
        "mode": stored.mode,
        "status": status,
        "model": stored.model,
        "createdAt": stored.created_at,
        "updatedAt": stored.updated_at,
        "archivedAt": stored.archived_at,
    });
    if let Some(map) = out.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    out
}
