//! The metrics, from the registry.

use std::collections::BTreeSet;

use super::{code, table};

const VALUES: &str = "`controller` is the kind in lower case, `result` is `ok` or `error`, `state` is `healthy`, `unhealthy` or \
                      `learner`. etcd's own metrics are served by the members' pods on their port `metrics`.";

/// One metric, as far as it has been parsed.
#[derive(Default)]
struct Metric {
    name: String,
    type_: String,
    help: String,
    labels: BTreeSet<String>,
}

/// The section about metrics, from a text in the Prometheus format.
pub fn section(text: &str) -> String {
    let rows: Vec<[String; 4]> = read(text).iter().map(row_of).collect();
    let table = table(["Metric", "Type", "Labels", "Meaning"], &rows);
    format!("## Metrics\n\nServed at `/metrics`.\n\n{table}\n\n{VALUES}")
}

fn row_of(metric: &Metric) -> [String; 4] {
    let labels = metric.labels.iter().map(|label| code(label)).collect::<Vec<_>>().join(", ");
    [code(&metric.name), metric.type_.clone(), labels, metric.help.clone()]
}

fn read(text: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines() {
        if let Some((_, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            metrics.push(Metric { help: help.to_owned(), ..Metric::default() });
        } else if let Some(metric) = metrics.last_mut() {
            read_into(metric, line);
        }
    }
    metrics
}

fn read_into(metric: &mut Metric, line: &str) {
    if let Some((name, type_)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
        (metric.name, metric.type_) = (name.to_owned(), type_.to_owned());
    } else if !line.starts_with('#') {
        let (name, labels) = name_and_labels(line);
        // Counters and infos are known by the names of their samples, histograms by the prefix of those.
        if metric.type_ != "histogram" {
            metric.name = name.to_owned();
        }
        metric.labels.extend(labels.filter(|label| *label != "le").map(str::to_owned));
    }
}

/// The name of a sample and the names of its labels.
fn name_and_labels(sample: &str) -> (&str, impl Iterator<Item = &str>) {
    let end = sample.find(['{', ' ']).unwrap_or(sample.len());
    let (name, rest) = sample.split_at(end);
    let labels = rest.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(labels, _)| labels);
    (name, labels.split(',').filter_map(|label| Some(label.split_once('=')?.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_names_and_labels_of_their_samples() {
        let text = "# HELP a_b How often.\n# TYPE a_b counter\na_b_total{x=\"1\",y=\"2\"} 1\n\
                    # HELP c How long.\n# TYPE c histogram\nc_sum{x=\"1\"} 0\nc_bucket{le=\"1\",x=\"1\"} 0\n# EOF\n";
        let page = section(text);
        assert!(page.contains("| `a_b_total` | counter | `x`, `y` | How often. |"), "{page}");
        assert!(page.contains("| `c` | histogram | `x` | How long. |"), "{page}");
    }
}
