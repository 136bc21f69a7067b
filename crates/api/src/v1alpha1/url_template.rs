//! Texts with variables, such as `s3://bucket/{{ .Namespace }}/{{ .Name }}.db`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The names of the variables.
pub const VARIABLES: [&str; 5] = ["Name", "Namespace", "UID", "CreationTimestamp", "ClusterName"];

/// What the variables stand for.
#[derive(Clone, Debug)]
pub struct Variables<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub uid: &'a str,
    pub created: &'a Time,
    /// Nothing if the cluster was given by its address.
    pub cluster_name: Option<&'a str>,
}

impl Variables<'_> {
    fn value(&self, variable: &str) -> Result<String, String> {
        Ok(match variable {
            "Name" => self.name.to_owned(),
            "Namespace" => self.namespace.to_owned(),
            "UID" => self.uid.to_owned(),
            // Without colons, which are awkward in the names of files, and sorted by time.
            "CreationTimestamp" => self.created.0.strftime("%Y%m%dT%H%M%SZ").to_string(),
            "ClusterName" => {
                let none = "{{ .ClusterName }} stands for nothing, because the cluster was given by its address; \
                            set spec.clusterName or remove it";
                self.cluster_name.ok_or(none)?.to_owned()
            }
            unknown => {
                let known = VARIABLES.map(|name| format!("{{{{ .{name} }}}}")).join(", ");
                return Err(format!("{{{{ .{unknown} }}}} stands for nothing; the variables are {known}"));
            }
        })
    }
}

/// The text with what its variables stand for, or a sentence that says what is wrong with it.
pub fn fill_template(template: &str, variables: &Variables) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) =
            after.split_once("}}").ok_or_else(|| format!("{template} has {{{{ without the }}}} that belongs to it"))?;
        let variable = inside.trim();
        let variable = variable
            .strip_prefix('.')
            .ok_or_else(|| format!("{{{{{inside}}}}} in {template} is no variable; write it like {{{{ .Name }}}}"))?;
        filled.push_str(before);
        filled.push_str(&variables.value(variable)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, cluster_name: Option<&str>) -> Result<String, String> {
        let created = Time("2026-11-15T22:42:05Z".parse().unwrap());
        let variables = Variables { name: "b", namespace: "ns", uid: "7e1c", created: &created, cluster_name };
        fill_template(template, &variables)
    }

    #[test]
    fn url_template_variables_are_expanded() {
        for (template, expected) in [
            ("s3://bucket/{{ .Namespace }}/{{ .Name }}-{{ .UID }}.db", "s3://bucket/ns/b-7e1c.db"),
            ("gs://bucket/{{.ClusterName}}/{{.CreationTimestamp}}.db?a=b", "gs://bucket/c/20261115T224205Z.db?a=b"),
            ("{{  .Name }}{{ .Name}}", "bb"),
            ("az://bucket/plain.db", "az://bucket/plain.db"),
            ("", ""),
        ] {
            assert_eq!(filled(template, Some("c")).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn every_url_template_variable_has_a_value() {
        for name in VARIABLES {
            let value = filled(&format!("{{{{ .{name} }}}}"), Some("c")).unwrap();
            assert!(!value.is_empty() && !value.contains('{'), "{name}: {value}");
        }
    }

    #[test]
    fn malformed_url_template_is_refused_with_a_message() {
        for (template, says) in [
            (
                "s3://bucket/{{ .Nam }}",
                "{{ .Nam }} stands for nothing; the variables are {{ .Name }}, {{ .Namespace }}",
            ),
            ("s3://bucket/{{ . }}", "{{ . }} stands for nothing"),
            ("s3://bucket/{{ Name }}", "is no variable; write it like {{ .Name }}"),
            ("s3://bucket/{{ .Name", "has {{ without the }} that belongs to it"),
            ("s3://bucket/{{ {{ .Name }} }}", "is no variable"),
        ] {
            let sentence = filled(template, Some("c")).unwrap_err();
            assert!(sentence.contains(says), "{template}: {sentence}");
        }
    }

    #[test]
    fn cluster_given_by_its_endpoint_has_no_name() {
        let sentence = filled("s3://bucket/{{ .ClusterName }}.db", None).unwrap_err();
        assert!(sentence.contains("set spec.clusterName or remove it"), "{sentence}");
        assert_eq!(filled("s3://bucket/{{ .Name }}.db", None).as_deref(), Ok("s3://bucket/b.db"));
    }
}
