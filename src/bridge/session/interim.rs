//! PURE. Mappings that the translation layer is about to take over; each is the least that a turn
//! needs. Removed piece by piece as `bridge::translate` grows.

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
