//! A form that the agent asks to be filled in: a plan to approve, questions. Data only.
//!
//! Fields keep the order of the wire. The form is a list of rows (each option of a choice is one),
//! so that arrows, numbers and clicks all mean the same thing.

use std::cmp::Ordering;

use super::composer::Composer;
use serde_json::{Map, Value, json};

/// A description of more lines than this is shown above the fields.
const LONG_DESCRIPTION: usize = 3;

/// One value of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormOption {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub title: String,
    /// More about it.
    pub description: String,
}

/// How a field is filled in.
#[derive(Debug, Clone)]
pub enum FieldKind {
    /// One of several.
    One {
        /// The values.
        options: Vec<FormOption>,
        /// Which is chosen.
        chosen: Option<usize>,
    },
    /// Some of several.
    Many {
        /// The values.
        options: Vec<FormOption>,
        /// Which are marked.
        marked: Vec<bool>,
        /// At least so many.
        min: Option<u64>,
        /// At most so many.
        max: Option<u64>,
    },
    /// Free text.
    Text {
        /// What is written.
        draft: Composer,
        /// Fewest characters.
        min: Option<u64>,
        /// Most characters.
        max: Option<u64>,
    },
    /// A number.
    Number {
        /// What is written.
        draft: Composer,
        /// Without a fraction.
        integer: bool,
        /// Least value.
        min: Option<f64>,
        /// Greatest value.
        max: Option<f64>,
    },
    /// Yes or no.
    Switch(Option<bool>),
}

/// One field.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name on the wire.
    pub key: String,
    /// What is shown.
    pub title: String,
    /// More about it.
    pub description: String,
    /// Whether it must be filled in.
    pub required: bool,
    /// How.
    pub kind: FieldKind,
}

/// A row that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormRow {
    /// An option of a field.
    Option(usize, usize),
    /// The text or number of a field, or its switch.
    Input(usize),
    /// Send the answers.
    Submit,
    /// Say no to the form as a whole.
    Decline,
}

/// Why the form cannot be sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which field.
    pub field: usize,
    /// What is wrong.
    pub message: String,
}

/// A form being filled in.
#[derive(Debug, Clone)]
pub struct Form {
    /// What the agent says above the fields, as markdown.
    pub message: String,
    /// The fields in the order of the wire.
    pub fields: Vec<Field>,
    /// The tool call that it belongs to, or empty.
    pub tool_call_id: String,
    /// Index of the row that has the focus.
    pub focus: usize,
    /// What was wrong when sending was tried.
    pub problem: Option<Problem>,
}

impl Form {
    /// Reads `elicitation/create` params of the form mode.
    pub fn read(params: &Value) -> Self {
        let mut message = text(params, "message");
        let mut fields = fields(params);
        for field in &mut fields {
            // A text of many lines (a plan) is read above the fields, where it can be scrolled.
            if field.description.lines().count() > LONG_DESCRIPTION {
                message.push_str("\n\n");
                message.push_str(&std::mem::take(&mut field.description));
            }
        }
        let tool_call_id = text(params, "toolCallId");
        let mut form = Self { message, fields, tool_call_id, focus: 0, problem: None };
        if form.is_confirmation() {
            // Enter alone must confirm nothing.
            form.focus_on(FormRow::Decline);
        }
        form
    }

    /// Whether there is nothing to fill in: it is to be confirmed, or not.
    pub fn is_confirmation(&self) -> bool {
        self.fields.is_empty()
    }

    /// The rows that can have the focus, top to bottom.
    pub fn rows(&self) -> Vec<FormRow> {
        let mut rows = Vec::new();
        for (f, field) in self.fields.iter().enumerate() {
            match &field.kind {
                FieldKind::One { options, .. } | FieldKind::Many { options, .. } => {
                    rows.extend((0..options.len()).map(|o| FormRow::Option(f, o)));
                }
                _ => rows.push(FormRow::Input(f)),
            }
        }
        rows.extend([FormRow::Submit, FormRow::Decline]);
        rows
    }

    /// The row that has the focus.
    pub fn focused(&self) -> FormRow {
        self.rows().get(self.focus).copied().unwrap_or(FormRow::Submit)
    }

    /// The text being written in the focused row.
    pub fn draft_mut(&mut self) -> Option<&mut Composer> {
        let FormRow::Input(f) = self.focused() else { return None };
        match &mut self.fields.get_mut(f)?.kind {
            FieldKind::Text { draft, .. } | FieldKind::Number { draft, .. } => Some(draft),
            _ => None,
        }
    }

    /// Moves the focus by rows and stops at the ends.
    pub fn move_by(&mut self, by: isize) {
        let last = self.rows().len().saturating_sub(1);
        self.focus = self.focus.saturating_add_signed(by).min(last);
    }

    /// Moves the focus to the first row of the next (or previous) field, around the ends.
    pub fn move_field(&mut self, forward: bool) {
        let rows = self.rows();
        let starts: Vec<usize> = rows
            .iter()
            .enumerate()
            .filter(|(_, r)| !matches!(r, FormRow::Option(_, o) if *o > 0))
            .map(|(i, _)| i)
            .collect();
        let next = if forward {
            starts.iter().find(|i| **i > self.focus).or(starts.first())
        } else {
            let own = starts.iter().rfind(|i| **i <= self.focus).copied().unwrap_or(0);
            starts.iter().rfind(|i| **i < own).or(starts.last())
        };
        self.focus = next.copied().unwrap_or(0);
    }

    /// Puts the focus on a row.
    pub fn focus_on(&mut self, row: FormRow) {
        if let Some(at) = self.rows().iter().position(|r| *r == row) {
            self.focus = at;
        }
    }

    /// Chooses or marks the focused row; for a switch, turns it. Texts and buttons are left alone.
    pub fn toggle(&mut self) {
        self.problem = None;
        match self.focused() {
            FormRow::Option(f, o) => {
                let Some(field) = self.fields.get_mut(f) else { return };
                match &mut field.kind {
                    FieldKind::One { chosen, .. } => {
                        *chosen =
                            if *chosen == Some(o) && !field.required { None } else { Some(o) };
                    }
                    FieldKind::Many { marked, .. } => {
                        if let Some(mark) = marked.get_mut(o) {
                            *mark = !*mark;
                        }
                    }
                    _ => {}
                }
            }
            FormRow::Input(f) => {
                if let Some(FieldKind::Switch(on)) = self.fields.get_mut(f).map(|f| &mut f.kind) {
                    *on = Some(!on.unwrap_or(false));
                }
            }
            FormRow::Submit | FormRow::Decline => {}
        }
    }

    /// Takes the focused option of a single choice and goes on to the next field.
    pub fn choose_and_go_on(&mut self) {
        if let FormRow::Option(f, o) = self.focused()
            && let Some(FieldKind::One { chosen, .. }) = self.fields.get_mut(f).map(|f| &mut f.kind)
        {
            *chosen = Some(o);
        }
        self.problem = None;
        self.move_field(true);
    }

    /// Chooses the option of the focused field with a number, counted from 1.
    pub fn choose_number(&mut self, digit: char) -> bool {
        let FormRow::Option(f, _) = self.focused() else { return false };
        let Some(n) = digit.to_digit(10).and_then(|d| usize::try_from(d).ok()) else {
            return false;
        };
        let Some(o) = n.checked_sub(1) else { return false };
        let row = FormRow::Option(f, o);
        if !self.rows().contains(&row) {
            return false;
        }
        self.focus_on(row);
        match self.fields.get_mut(f).map(|f| &mut f.kind) {
            Some(FieldKind::One { chosen, .. }) => *chosen = Some(o),
            _ => self.toggle(),
        }
        self.problem = None;
        true
    }

    /// Returns the answers, or says which field is wrong and puts the focus on it.
    pub fn submit(&mut self) -> Option<Map<String, Value>> {
        let mut answers = Map::new();
        for (i, field) in self.fields.iter().enumerate() {
            match answer(field) {
                Ok(Some(value)) => {
                    answers.insert(field.key.clone(), value);
                }
                Ok(None) => {}
                Err(message) => {
                    self.problem = Some(Problem { field: i, message });
                    let row = match self.fields.get(i).map(|f| &f.kind) {
                        Some(FieldKind::One { .. } | FieldKind::Many { .. }) => {
                            FormRow::Option(i, 0)
                        }
                        _ => FormRow::Input(i),
                    };
                    self.focus_on(row);
                    return None;
                }
            }
        }
        Some(answers)
    }
}

/// The fields of `elicitation/create` params, in the order of the wire.
pub(super) fn fields(params: &Value) -> Vec<Field> {
    let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut fields: Vec<Field> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, schema)| read_field(key, schema, required.contains(&key.as_str())))
        .collect();
    // A sender that keeps its fields in a sorted map puts `q_10` before `q_2`: sorted names say
    // nothing of the order that was meant but by their numbers.
    if fields.is_sorted_by(|a: &Field, b| a.key <= b.key) {
        fields.sort_by(|a, b| by_numbers(&a.key, &b.key));
    }
    fields
}

/// Compares two names, the numbers in them by value.
fn by_numbers(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (pieces(one), pieces(other));
    loop {
        let order = match (one.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (left, right) => left.cmp(&right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The letters and numbers of a name; a number is compared by its length first.
fn pieces(name: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let len = if digits > 0 { digits } else { first.len_utf8() };
        let (piece, after) = rest.split_at_checked(len)?;
        rest = after;
        let number = piece.trim_start_matches('0');
        Some(if digits > 0 { (number.len(), number) } else { (0, piece) })
    })
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn read_field(key: &str, schema: &Value, required: bool) -> Field {
    let title = text(schema, "title");
    Field {
        key: key.to_owned(),
        title: if title.is_empty() { key.to_owned() } else { title },
        description: text(schema, "description"),
        required,
        kind: read_kind(schema),
    }
}

fn read_kind(schema: &Value) -> FieldKind {
    let number = |k: &str| schema.get(k).and_then(Value::as_f64);
    let count = |k: &str| schema.get(k).and_then(Value::as_u64);
    let default = schema.get("default");
    let draft = |value: Option<String>| {
        let mut draft = Composer::default();
        if let Some(value) = value {
            draft.restore_draft(value, Vec::new());
        }
        draft
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => FieldKind::Switch(default.and_then(Value::as_bool)),
        Some(kind @ ("number" | "integer")) => FieldKind::Number {
            draft: draft(default.filter(|d| d.is_number()).map(ToString::to_string)),
            integer: kind == "integer",
            min: number("minimum"),
            max: number("maximum"),
        },
        Some("array") => {
            let options = schema.get("items").map(read_options).unwrap_or_default();
            let wanted: Vec<&str> = default
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let marked = options.iter().map(|o| wanted.contains(&o.value.as_str())).collect();
            FieldKind::Many { options, marked, min: count("minItems"), max: count("maxItems") }
        }
        _ => {
            let options = read_options(schema);
            let default = default.and_then(Value::as_str);
            if options.is_empty() {
                let draft = draft(default.map(str::to_owned));
                FieldKind::Text { draft, min: count("minLength"), max: count("maxLength") }
            } else {
                let chosen = options.iter().position(|o| Some(o.value.as_str()) == default);
                FieldKind::One { options, chosen }
            }
        }
    }
}

/// The values of `oneOf`, `anyOf` or `enum` (with `enumNames`).
fn read_options(schema: &Value) -> Vec<FormOption> {
    let list = |k: &str| schema.get(k).and_then(Value::as_array);
    if let Some(options) = list("oneOf").or_else(|| list("anyOf")) {
        return options
            .iter()
            .filter_map(|o| {
                let value = o.get("const")?.as_str()?.to_owned();
                let title = text(o, "title");
                Some(FormOption {
                    title: if title.is_empty() { value.clone() } else { title },
                    value,
                    description: text(o, "description"),
                })
            })
            .collect();
    }
    let names = list("enumNames");
    list("enum")
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(i, v)| {
            let value = v.as_str()?.to_owned();
            let name = names.and_then(|n| n.get(i)).and_then(Value::as_str);
            let title = name.unwrap_or(&value).to_owned();
            Some(FormOption { value, title, description: String::new() })
        })
        .collect()
}

/// Returns the value to send, `None` to leave the field out, or what is wrong.
fn answer(field: &Field) -> Result<Option<Value>, String> {
    let value = match &field.kind {
        FieldKind::Switch(on) => on.or(field.required.then_some(false)).map(Value::Bool),
        FieldKind::One { options, chosen } => {
            chosen.and_then(|c| options.get(c)).map(|o| Value::String(o.value.clone()))
        }
        FieldKind::Many { options, marked, min, max } => {
            let picked: Vec<&str> = options
                .iter()
                .zip(marked)
                .filter(|(_, m)| **m)
                .map(|(o, _)| o.value.as_str())
                .collect();
            let n = picked.len() as u64;
            let least = min.unwrap_or(u64::from(field.required));
            if n < least && (n > 0 || field.required) {
                return Err(format!("choose at least {least}"));
            }
            if max.is_some_and(|max| n > max) {
                return Err(format!("choose at most {}", max.unwrap_or_default()));
            }
            (n > 0 || field.required).then(|| json!(picked))
        }
        FieldKind::Text { draft, min, max } => {
            let written = draft.expanded();
            let n = written.chars().count() as u64;
            let empty = written.trim().is_empty();
            if !empty && min.is_some_and(|min| n < min) {
                return Err(format!("at least {} characters", min.unwrap_or_default()));
            }
            if max.is_some_and(|max| n > max) {
                return Err(format!(
                    "at most {} characters, these are {n}",
                    max.unwrap_or_default()
                ));
            }
            (!empty).then_some(Value::String(written))
        }
        FieldKind::Number { draft, integer, min, max } => {
            number_answer(draft.text().trim(), *integer, *min, *max)?
        }
    };
    if value.is_none() && field.required {
        return Err("this one is needed".to_owned());
    }
    Ok(value)
}

fn number_answer(
    written: &str,
    integer: bool,
    min: Option<f64>,
    max: Option<f64>,
) -> Result<Option<Value>, String> {
    if written.is_empty() {
        return Ok(None);
    }
    let value = if integer {
        let n: i64 = written.parse().map_err(|e| format!("not a whole number ({e})"))?;
        json!(n)
    } else {
        let n: f64 = written.parse().map_err(|e| format!("not a number ({e})"))?;
        if !n.is_finite() {
            return Err("not a number".to_owned());
        }
        json!(n)
    };
    let n = value.as_f64().unwrap_or_default();
    if min.is_some_and(|min| n < min) {
        return Err(format!("at least {}", min.unwrap_or_default()));
    }
    if max.is_some_and(|max| n > max) {
        return Err(format!("at most {}", max.unwrap_or_default()));
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value, required: &[&str]) -> Form {
        Form::read(&json!({"message": "m", "requestedSchema":
            {"type": "object", "properties": properties, "required": required}}))
    }

    #[test]
    fn fields_keep_the_order_of_the_wire() {
        let f = form(
            &json!({"z": {"type": "string"}, "a": {"type": "boolean"}, "m": {"type": "integer"}}),
            &[],
        );
        let keys: Vec<_> = f.fields.iter().map(|f| f.key.as_str()).collect();
        assert_eq!(keys, ["z", "a", "m"]);
    }

    #[test]
    fn names_that_come_sorted_are_put_in_the_order_of_their_numbers() {
        let order = |names: &[&str]| -> Vec<String> {
            let properties: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            form(&Value::Object(properties), &[]).fields.into_iter().map(|f| f.key).collect()
        };
        let sorted = ["q_0", "q_0_other", "q_1", "q_10", "q_10_other", "q_11", "q_2", "q_2_other"];
        let meant = ["q_0", "q_0_other", "q_1", "q_2", "q_2_other", "q_10", "q_10_other", "q_11"];
        assert_eq!(order(&sorted), meant);
        // Another order was meant as it is.
        assert_eq!(order(&["q_10", "q_2", "q_1"]), ["q_10", "q_2", "q_1"]);
        assert_eq!(order(&["a", "b007", "b07", "b1"]), ["a", "b1", "b007", "b07"]);
        let huge = "n99999999999999999999999999";
        assert_eq!(order(&["n100", huge, "中2"]), ["n100", huge, "中2"]);
    }

    #[test]
    fn every_kind_of_field_is_answered_with_its_type() {
        let mut f = form(
            &json!({"strategy": {"type": "string", "oneOf": [{"const": "safe", "title": "Safe"}, {"const": "fast", "title": "Fast"}], "default": "safe"},
                   "targets": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}},
                   "tests": {"type": "boolean", "default": true}, "n": {"type": "integer", "minimum": 1, "maximum": 9}}),
            &["strategy", "targets"],
        );
        assert!(f.submit().is_none());
        assert_eq!(f.problem.as_ref().unwrap().field, 1);
        assert_eq!(f.focused(), FormRow::Option(1, 0));
        assert!(f.choose_number('2'));
        f.focus_on(FormRow::Input(3));
        f.draft_mut().unwrap().insert("12");
        assert!(f.submit().is_none(), "12 is above the maximum");
        f.draft_mut().unwrap().delete_back();
        let answers = f.submit().unwrap();
        assert_eq!(
            Value::Object(answers),
            json!({"strategy": "safe", "targets": ["b"], "tests": true, "n": 1})
        );
    }

    #[test]
    fn an_optional_field_left_empty_is_left_out() {
        let mut f = form(
            &json!({"t": {"type": "string"}, "n": {"type": "number"}, "b": {"type": "boolean"}}),
            &[],
        );
        assert_eq!(f.submit().unwrap().len(), 0);
    }

    #[test]
    fn enter_chooses_and_goes_on_until_submit() {
        let mut f = form(
            &json!({"a": {"type": "string", "enum": ["x", "y"]}, "t": {"type": "string"}}),
            &["a"],
        );
        f.move_by(1);
        f.choose_and_go_on();
        assert_eq!(f.focused(), FormRow::Input(1));
        f.choose_and_go_on();
        assert_eq!(f.focused(), FormRow::Submit);
        assert_eq!(f.submit().unwrap()["a"], "y");
    }

    #[test]
    fn a_schema_that_makes_no_sense_is_still_a_form() {
        let f = Form::read(&json!({"message": 3, "requestedSchema": {"properties": {"x": 7}}}));
        assert_eq!(f.rows(), [FormRow::Input(0), FormRow::Submit, FormRow::Decline]);
    }
}
