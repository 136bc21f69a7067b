//! How errors are printed, in every log line and message: with all that caused them. Nothing else belongs here.

use std::error::Error;

/// An error with all that caused it, as far as that is not said already: the outermost one is often just "transport error", and
/// some repeat their cause.
pub fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        next = cause.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Link(&'static str, Option<Box<Link>>);

    impl fmt::Display for Link {
        fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl Error for Link {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn causes_follow_their_error_and_are_not_repeated() {
        let refused = || Link("connection refused", None);
        let chain =
            Link("transport error", Some(Box::new(Link("connecting: connection refused", Some(Box::new(refused()))))));
        assert_eq!(with_causes(&chain), "transport error: connecting: connection refused");
        assert_eq!(with_causes(&refused()), "connection refused");
    }
}
