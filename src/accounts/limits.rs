//! What is left of a coding plan, as its service tells it: percentages by window. PURE.

use std::fmt::Write as _;

use serde_json::Value;

/// What is left, window by window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The plan's level (`pro`), as the service has it; may be empty.
    pub level: String,
    /// The windows: five hours, a week, tools.
    pub windows: Vec<Window>,
}

/// One window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// What it is called: `5h`, `Week`, `MCP`.
    pub label: String,
    /// How much of it is used, 0 to 100.
    pub used_percent: u8,
    /// When it begins anew, milliseconds since 1970.
    pub resets_ms: Option<u64>,
}

/// Cells of a bar.
const BAR: usize = 20;

/// Reads the answer of `…/usage/quota/limit`. An answer without any figure is an error.
pub(super) fn parse(body: &Value) -> Result<Limits, String> {
    let data = body.get("data").ok_or("no data")?;
    let items = data.get("limits").and_then(Value::as_array).ok_or("no limits in it")?;
    let mut windows: Vec<(u8, Window)> = items.iter().filter_map(window).collect();
    if windows.is_empty() {
        return Err("no figures in it".to_owned());
    }
    windows.sort_by_key(|(order, _)| *order);
    let level = data.get("level").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Limits { level, windows: windows.into_iter().map(|(_, window)| window).collect() })
}

fn window(item: &Value) -> Option<(u8, Window)> {
    let kind = item.get("type")?.as_str()?;
    let (order, label) = match (kind, number(item, "number")) {
        ("TOKENS_LIMIT", Some(n)) if is(n, 5.0) => (0, "5h".to_owned()),
        ("TOKENS_LIMIT", Some(n)) if is(n, 7.0) => (1, "Week".to_owned()),
        ("TOKENS_LIMIT", _) => (2, "Tokens".to_owned()),
        ("TIME_LIMIT" | "MCP_LIMIT", _) => (3, "MCP".to_owned()),
        (other, _) => (4, other.chars().filter(|c| !c.is_control()).take(20).collect()),
    };
    let resets_ms = item.get("nextResetTime").and_then(Value::as_u64).filter(|ms| *ms > 0);
    Some((order, Window { label, used_percent: used_percent(item)?, resets_ms }))
}

fn is(number: f64, wanted: f64) -> bool {
    (number - wanted).abs() < 0.5
}

/// Numbers may come as texts.
fn number(item: &Value, key: &str) -> Option<f64> {
    let value = item.get(key)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    number.is_finite().then_some(number)
}

/// What remains of the whole says it best, then what is used of it, then the service's own figure.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=100 before the cast"
)]
fn used_percent(item: &Value) -> Option<u8> {
    let (remaining, used) = (number(item, "remaining"), number(item, "currentValue"));
    let sum = remaining.zip(used).map(|(a, b)| a + b).filter(|sum| *sum > 0.0);
    let total = sum.or_else(|| number(item, "usage")).filter(|total| *total > 0.0);
    let by_rest = total.zip(remaining).filter(|(total, rest)| (0.0..=*total).contains(rest));
    let percent = by_rest
        .map(|(total, rest)| (total - rest) / total * 100.0)
        .or_else(|| total.zip(used).map(|(total, used)| used / total * 100.0))
        .or_else(|| number(item, "percentage"))?;
    Some(percent.clamp(0.0, 100.0).round() as u8)
}

impl Limits {
    /// The figures for people, a line a window. `now_ms` is milliseconds since 1970.
    pub fn to_text(&self, now_ms: u64) -> String {
        let mut text = "Coding plan".to_owned();
        if !self.level.is_empty() {
            let plain: String = self.level.chars().filter(|c| !c.is_control()).take(40).collect();
            let _ = write!(text, " ({plain})");
        }
        text.push_str(", used:\n");
        for window in &self.windows {
            let filled = usize::from(window.used_percent) * BAR / 100;
            let bar = "█".repeat(filled) + &"░".repeat(BAR - filled);
            let _ = write!(text, "  {:<6} {bar} {:>3}%", window.label, window.used_percent);
            if let Some(left) = window.resets_ms.and_then(|at| at.checked_sub(now_ms)) {
                let _ = write!(text, ", anew in {}", span(left));
            }
            text.push('\n');
        }
        text
    }
}

/// `2 d 3 h`, `4 h 10 min`, `5 min`.
fn span(ms: u64) -> String {
    let minutes = ms.div_ceil(60_000);
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_read_however_the_service_writes_them() {
        let percent = |item: Value| used_percent(&item);
        assert_eq!(percent(json!({"remaining": 30, "currentValue": 10})), Some(25));
        assert_eq!(percent(json!({"usage": "200", "remaining": "50"})), Some(75));
        assert_eq!(percent(json!({"usage": 200, "currentValue": 20})), Some(10));
        assert_eq!(percent(json!({"usage": 200, "remaining": 900, "currentValue": 250})), Some(22));
        assert_eq!(percent(json!({"percentage": 130})), Some(100));
        assert_eq!(percent(json!({"percentage": "much"})), None);
        assert_eq!(percent(json!({})), None);
    }

    #[test]
    fn windows_are_sorted_and_drawn_with_the_time_that_is_left() {
        let limits = parse(&json!({"data": {"level": "pro", "limits": [
            {"type": "TIME_LIMIT", "percentage": 0},
            {"type": "TOKENS_LIMIT", "number": 7, "percentage": 12, "nextResetTime": 180_000_000},
            {"type": "TOKENS_LIMIT", "number": 5, "percentage": 45, "nextResetTime": 7_800_000},
            {"type": "TOKENS_LIMIT", "number": 5},
        ]}}))
        .unwrap();
        assert_eq!(
            limits.to_text(0),
            "Coding plan (pro), used:\n\
             \x20 5h     █████████░░░░░░░░░░░  45%, anew in 2 h 10 min\n\
             \x20 Week   ██░░░░░░░░░░░░░░░░░░  12%, anew in 2 d 2 h\n\
             \x20 MCP    ░░░░░░░░░░░░░░░░░░░░   0%\n"
        );
        for nothing in [json!({}), json!({"data": {"limits": [{"type": "X"}]}})] {
            assert!(parse(&nothing).is_err(), "{nothing}");
        }
    }
}
