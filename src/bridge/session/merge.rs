//! PURE. Adjacent pieces of one streamed text become one chunk while a session is behind its
//! engine. The actor holds a chunk only as long as the next event is already there to be looked
//! at, so no text is ever late for it. Called by the session's actor.

use agent_client_protocol::v1::schema as acp;

/// A merged chunk is not made longer than this many bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The last update, while more of the same text may follow at once.
#[derive(Debug, Default)]
pub(crate) struct Held(Option<acp::SessionUpdate>);

impl Held {
    /// Takes an update in, and returns the one before it when the two are not one text.
    pub(crate) fn push(&mut self, update: acp::SessionUpdate) -> Option<acp::SessionUpdate> {
        if let Some(held) = &mut self.0
            && join(held, &update)
        {
            return None;
        }
        self.0.replace(update)
    }

    /// The update that was held back, to be sent now.
    pub(crate) fn release(&mut self) -> Option<acp::SessionUpdate> {
        self.0.take()
    }
}

/// Appends `next` to `held` when both are pieces of the same text.
fn join(held: &mut acp::SessionUpdate, next: &acp::SessionUpdate) -> bool {
    use acp::SessionUpdate::{AgentMessageChunk, AgentThoughtChunk};
    let ((AgentMessageChunk(held), AgentMessageChunk(next))
    | (AgentThoughtChunk(held), AgentThoughtChunk(next))) = (held, next)
    else {
        return false;
    };
    if held.message_id != next.message_id || held.meta != next.meta {
        return false;
    }
    let (acp::ContentBlock::Text(held), acp::ContentBlock::Text(next)) =
        (&mut held.content, &next.content)
    else {
        return false;
    };
    let alike = held.annotations == next.annotations && held.meta == next.meta;
    let fits = held.text.len() + next.text.len() <= MAX_BYTES;
    if alike && fits {
        held.text.push_str(&next.text);
    }
    alike && fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, id: &str) -> acp::ContentChunk {
        acp::ContentChunk::new(text.to_owned().into())
            .message_id(acp::MessageId::from(id.to_owned()))
    }

    fn message(text: &str, id: &str) -> acp::SessionUpdate {
        acp::SessionUpdate::AgentMessageChunk(piece(text, id))
    }

    /// What is sent for these updates when all of them are there at once.
    fn sent(updates: impl IntoIterator<Item = acp::SessionUpdate>) -> Vec<acp::SessionUpdate> {
        let mut held = Held::default();
        let mut sent: Vec<_> = updates.into_iter().filter_map(|it| held.push(it)).collect();
        sent.extend(held.release());
        sent
    }

    #[test]
    fn pieces_of_one_message_become_one_chunk() {
        let all = sent([message("a", "m"), message("b", "m"), message("c", "m")]);
        assert_eq!(all, [message("abc", "m")]);
    }

    #[test]
    fn another_message_a_thought_and_any_other_update_keep_their_place() {
        let thought = acp::SessionUpdate::AgentThoughtChunk(piece("t", "m"));
        let plan = acp::SessionUpdate::Plan(acp::Plan::new(Vec::new()));
        let all = [
            message("a", "m"),
            message("b", "n"),
            thought,
            message("c", "n"),
            plan,
            message("d", "n"),
        ];
        assert_eq!(sent(all.clone()), all);
    }

    #[test]
    fn a_chunk_does_not_grow_without_bound() {
        let long = "x".repeat(MAX_BYTES);
        let all = [message(&long, "m"), message("y", "m")];
        assert_eq!(sent(all.clone()), all);
    }

    #[test]
    fn nothing_is_kept_after_the_release() {
        let mut held = Held::default();
        assert_eq!(held.push(message("a", "m")), None);
        assert_eq!(held.release(), Some(message("a", "m")));
        assert_eq!(held.release(), None);
    }
}
