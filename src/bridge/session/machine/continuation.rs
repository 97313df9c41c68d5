//! PURE. What goes on when a reply or a deadline comes: one table from [`Cont`] to the method that
//! continues. A continuation that names a turn checks that the turn is still the same.

use serde_json::value::RawValue;

use super::settings::Change;
use super::turn::Stage;
use super::{Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::v4::commands::Command;

/// Why a call was made or a timer set.
#[derive(Debug)]
pub(crate) enum Cont {
    /// Nobody needs the reply.
    Ignore,
    Engine,
    Create,
    Lookup,
    Resume {
        lost: u8,
    },
    Subscribe,
    Presentation,
    Close {
        req: ReqId,
    },

    Send {
        n: u64,
    },
    /// A prompt that waited in the engine's queue may have been dropped.
    Dropped {
        /// Its number.
        n: u64,
    },
    /// The prompt is sent once more, if it still stands there.
    SendAgain {
        n: u64,
        stage: Stage,
    },
    FinishBy {
        n: u64,
    },
    UsageBase,
    UsageEnd {
        n: u64,
    },

    StopV4 {
        aimed: bool,
    },
    StopLegacy {
        n: u64,
    },
    StopUnanswered,
    StopSlow,
    StopAnswer {
        n: u64,
    },
    StopHard {
        n: u64,
    },
    HardClosed {
        n: u64,
    },

    V4Flow,
    V4Subscribe {
        topic: String,
    },
    V4Resync,
    V4Workspace,
    V4ResyncWorkspace,
    V4ResyncChild {
        child: String,
    },
    V4Rows {
        topic: String,
        picture: u64,
    },
    V4Patience,
    SteerSent {
        id: u64,
    },
    SteerTimer,
    QueueIsIdle,
    TakenOut {
        req: ReqId,
    },
    RevokedTakenOut {
        job: u64,
    },
    ChildEnd {
        child: String,
    },
    QueueCommand {
        req: ReqId,
        command: Box<Command>,
        tries: u8,
    },

    Gap,
    EndIsMissing {
        n: u64,
    },
    MissingEnd {
        n: u64,
    },
    GapDeadline,
    Silence {
        n: u64,
    },
    ProbeEvents {
        n: u64,
    },
    ProbeRead {
        n: u64,
        seen: u64,
        second: bool,
    },
    SecondLook {
        n: u64,
        seen: u64,
    },
    ForeignSilence,
    ForeignEvents {
        ended: Option<String>,
    },
    ForeignRead {
        seen: u64,
        second: bool,
    },
    ForeignSecondLook {
        seen: u64,
    },
    ForeignEndIsMissing {
        turn: String,
    },
    LastReply {
        n: u64,
        attempt: u8,
    },
    LastReplyAgain {
        n: u64,
        attempt: u8,
    },

    Diffs,
    Todos,
    TodosAgain,
    Settings,

    Ask {
        request: String,
    },
    AskTimeout {
        request: String,
    },

    Setting(Change),
    Repaired,
    SettingsLater,

    History(Box<super::history::Loading>),
    HistoryAgain(Box<super::history::Loading>),
    LoadTail {
        req: ReqId,
        meta: serde_json::Value,
    },
    Fork(Box<super::extensions::ForkWish>),
    /// The next part of a history.
    ReplayOn(Box<super::history::Loading>),
    Compact,
    CompactDeadline,
    Goal,
    ForkJob,
    CancelTask {
        req: ReqId,
        by_command: bool,
        task: String,
    },
    McpList,
    CommandsAgain,
    Servers {
        look: u8,
    },
    ServersAgain {
        look: u8,
    },
    SessionsFound,
    Pick,
    PickTimeout,
    Workflows,
    WorkflowRuns {
        list: serde_json::Value,
    },
}

impl Cont {
    /// True for a step on the way to a loaded session.
    pub(crate) fn opens(&self) -> bool {
        matches!(
            self,
            Self::Engine | Self::Create | Self::Lookup | Self::Resume { .. } | Self::Subscribe
        )
    }
}

impl Machine {
    pub(crate) fn resume_reply(&mut self, cont: Cont, reply: Result<Box<RawValue>, EngineError>) {
        match cont {
            Cont::Create => self.on_created(reply),
            Cont::Lookup => self.on_lookup(reply),
            Cont::Resume { lost } => self.on_resumed(lost, reply),
            Cont::Subscribe => self.on_subscribed(reply),
            Cont::Presentation => self.on_presentation(reply),
            Cont::Close { req } => self.on_closed(req, reply),
            Cont::Send { n } => self.on_sent(n, reply),
            Cont::UsageBase => self.on_usage_baseline(reply),
            Cont::UsageEnd { n } => self.on_usage_end(n, reply),
            Cont::StopV4 { aimed } => self.on_v4_stop(aimed, reply),
            Cont::StopLegacy { n } => self.on_legacy_stop(n, &reply),
            Cont::StopUnanswered => self.on_unanswered_stopped(&reply),
            Cont::HardClosed { n } => self.on_hard_closed(n),
            Cont::V4Flow => self.on_v4_flow(reply),
            Cont::V4Subscribe { topic } => self.on_v4_subscribed(&topic, reply),
            Cont::V4Resync => self.on_v4_resynced(reply),
            Cont::V4Workspace => self.on_workspace_subscribed(reply),
            Cont::V4ResyncWorkspace => self.on_workspace_resynced(reply),
            Cont::V4ResyncChild { child } => self.on_child_resynced(&child, reply),
            Cont::V4Rows { topic, picture } => self.on_v4_rows(&topic, picture, reply),
            Cont::SteerSent { id } => self.on_steer_reply(id, reply),
            Cont::QueueCommand { req, command, tries } => {
                self.on_queue_command(req, &command, tries, reply);
            }
            Cont::TakenOut { req } => self.on_taken_out(req, reply),
            Cont::RevokedTakenOut { job } => self.on_revoked_taken_out(job, reply),
            Cont::Gap => self.on_gap_reply(reply),
            Cont::MissingEnd { n } => self.on_missing_end(n, reply),
            Cont::ProbeEvents { n } => self.on_probe_events(n, reply),
            Cont::ProbeRead { n, seen, second } => self.on_probe_read(n, seen, second, reply),
            Cont::ForeignEvents { ended } => self.on_foreign_events(ended.as_deref(), reply),
            Cont::ForeignRead { seen, second } => self.on_foreign_read(seen, second, reply),
            Cont::LastReply { n, attempt } => self.on_last_reply(n, attempt, reply),
            Cont::Diffs => self.on_diffs(reply),
            Cont::Todos => self.on_todos(reply),
            Cont::Settings => self.on_settings_read(reply),
            Cont::Setting(change) => self.on_setting_applied(change, reply),
            Cont::Repaired => self.on_repaired(reply),
            Cont::History(loading) => self.on_history(*loading, reply),
            Cont::LoadTail { req, meta } => self.on_load_tail(req, meta, reply),
            Cont::Fork(wish) => self.on_forked(*wish, reply),
            Cont::Compact => self.on_compact_reply(reply),
            Cont::Goal => self.on_goal_reply(reply),
            Cont::ForkJob => self.on_fork_job(reply),
            Cont::CancelTask { req, by_command, task } => {
                self.on_task_cancelled(req, by_command, &task, reply);
            }
            Cont::McpList => self.on_mcp_list(reply),
            Cont::Servers { look } => self.on_servers(look, reply),
            Cont::Workflows => self.on_workflows(reply),
            Cont::WorkflowRuns { list } => self.on_workflow_runs(&list, reply),
            _ => {}
        }
    }

    pub(crate) fn resume_timer(&mut self, cont: Cont) {
        match cont {
            Cont::SendAgain { n, stage } => self.send_again_now(n, stage),
            Cont::Dropped { n } => self.send_dropped(n),
            Cont::FinishBy { n } => self.turn_is_over(n),
            Cont::StopSlow => self.stop_is_slow(),
            Cont::StopAnswer { n } => self.answer_by_deadline(n),
            Cont::StopHard { n } => self.stop_the_hard_way(n),
            Cont::V4Patience => self.v4_patience_is_over(),
            Cont::SteerTimer => self.steer_timer(),
            Cont::QueueIsIdle => self.queue_is_idle(),
            Cont::ChildEnd { child } => self.close_child(&child),
            Cont::GapDeadline => self.gap_is_late(),
            Cont::EndIsMissing { n } => self.end_is_missing(n),
            Cont::Silence { n } => self.silence_deadline(n),
            Cont::SecondLook { n, seen } => self.second_look(n, seen),
            Cont::ForeignSilence => self.foreign_is_silent(),
            Cont::ForeignSecondLook { seen } => self.foreign_second_look(seen),
            Cont::ForeignEndIsMissing { turn } => self.foreign_end_is_missing(turn),
            Cont::LastReplyAgain { n, attempt } => self.last_reply_again(n, attempt),
            Cont::SettingsLater => self.read_settings(),
            Cont::TodosAgain => self.read_todos(true),
            Cont::AskTimeout { request } => self.ask_timed_out(&request),
            Cont::HistoryAgain(loading) => self.read_history(*loading),
            Cont::ReplayOn(replaying) => self.replay_on(*replaying),
            Cont::CommandsAgain => self.repeat_commands(),
            Cont::ServersAgain { look } => self.read_servers(look),
            Cont::PickTimeout => self.pick_timed_out(),
            Cont::CompactDeadline => self.compact_is_late(),
            _ => {}
        }
    }
}
