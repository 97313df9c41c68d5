//! The table: figures with their targets and gates.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

/// What was asked for on the command line.
#[derive(Default)]
struct Options {
    short: bool,
    gate: bool,
    json: Option<String>,
    only: Vec<String>,
}

fn options() -> Options {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--short" => options.short = true,
            "--gate" => options.gate = true,
            "--json" => options.json = args.next(),
            // What cargo adds.
            "--bench" => {}
            name => options.only.push(name.to_owned()),
        }
    }
    options
}

/// Measures, prints the table, and fails when a gate was asked for and not held.
pub(crate) fn main(measure: impl FnOnce(&mut Report)) -> ExitCode {
    let options = options();
    let mut report = Report::new(&options.only, options.short);
    measure(&mut report);
    println!("\n{}", report.table());
    if let Some(path) = options.json {
        std::fs::write(path, report.json()).unwrap();
    }
    if options.gate && report.failed() {
        println!("A figure is beyond its gate.");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// One figure.
struct Row {
    group: String,
    name: String,
    value: f64,
    unit: &'static str,
    target: f64,
    /// Beyond this a change is a regression whatever the machine is doing.
    gate: f64,
}

/// How much longer a build without optimisation may take for the same.
const UNOPTIMISED: f64 = 4.0;

/// Collects figures, says which measurements are wanted, and prints.
pub(crate) struct Report {
    rows: Vec<Row>,
    only: Vec<String>,
    /// The form that CI runs.
    pub(crate) short: bool,
}

impl Report {
    pub(crate) fn new(only: &[String], short: bool) -> Self {
        Self { rows: Vec::new(), only: only.to_vec(), short }
    }

    /// Whether the group of measurements is to be run.
    pub(crate) fn wants(&self, group: &str) -> bool {
        let wanted =
            self.only.is_empty() || self.only.iter().any(|name| group.contains(name.as_str()));
        if wanted {
            println!("measuring {group} …");
        }
        wanted
    }

    /// `long` for a full run, `short` for the form that CI runs.
    pub(crate) fn pick<T>(&self, long: T, short: T) -> T {
        if self.short { short } else { long }
    }

    /// Adds a figure that should be at most `target`; a value above `gate` fails a gated run.
    pub(crate) fn add(
        &mut self,
        (group, name): (&str, &str),
        value: f64,
        unit: &'static str,
        target: f64,
        gate: f64,
    ) {
        // Times are for an optimised build; CI measures what the tests compiled, on whatever machine it has. What does
        // not depend on either, ratios and counts, keeps its gate.
        let is_time = matches!(unit, "s" | "ms" | "µs" | "ns");
        let gate = if is_time && cfg!(debug_assertions) { UNOPTIMISED * gate } else { gate };
        self.rows.push(Row {
            group: group.to_owned(),
            name: name.to_owned(),
            value,
            unit,
            target,
            gate,
        });
    }

    pub(crate) fn failed(&self) -> bool {
        self.rows.iter().any(|row| row.value.is_nan() || row.value > row.gate)
    }

    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| | figure | measured | target | gate | |\n|---|---|---:|---:|---:|---|\n",
        );
        for row in &self.rows {
            let verdict = if row.value.is_nan() || row.value > row.gate {
                "FAILED"
            } else if row.value > row.target {
                "above target"
            } else {
                "ok"
            };
            let Row { group, name, unit, .. } = row;
            let (value, target, gate) = (number(row.value), number(row.target), number(row.gate));
            writeln!(text, "| {group} | {name} | {value} {unit} | {target} | {gate} | {verdict} |")
                .unwrap();
        }
        text
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|r| json!({"group": r.group, "name": r.name, "value": r.value, "unit": r.unit, "target": r.target, "gate": r.gate}))
            .collect();
        serde_json::to_string_pretty(&rows).unwrap()
    }
}

fn number(value: f64) -> String {
    match value {
        v if v.is_nan() => "none".to_owned(),
        0.0 => "0".to_owned(),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// The value at this share of the sorted values.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get(((last as f64) * share).round() as usize).copied().unwrap_or(f64::NAN)
}
