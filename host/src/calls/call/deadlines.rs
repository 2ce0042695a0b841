//! How long a daemon may take to answer, by its method and by what the caller asks for.

use std::time::Duration;

use wildmatch::WildMatch;

/// The rules, tried in their order.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// Methods by pattern (`*` any text, `?` one character) with the time of their daemons.
    pub methods: Vec<(WildMatch, Duration)>,
    /// The time of any other method.
    pub default: Duration,
    /// The most that a caller may ask for.
    pub asked_max: Duration,
}

impl Deadlines {
    /// The time for a call of `method`. What the caller asks for counts before any rule.
    pub(in crate::calls) fn of(&self, method: &str, asked: Option<Duration>) -> Duration {
        let rule = || self.methods.iter().find(|(pattern, _)| pattern.matches(method)).map(|(_, time)| *time);
        asked.map(|asked| asked.min(self.asked_max)).or_else(rule).unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_counts_before_the_first_rule_that_matches_before_the_default() {
        let secs = Duration::from_secs;
        let methods = vec![(WildMatch::new("bash*"), secs(60)), (WildMatch::new("*"), secs(10))];
        let deadlines = Deadlines { methods, default: secs(30), asked_max: secs(3_600) };
        let of = |method, asked| deadlines.of(method, asked);
        assert_eq!((of("bash", None), of("bash:ls", None), of("a bash", None)), (secs(60), secs(60), secs(10)));
        assert_eq!((of("bash", Some(secs(1))), of("bash", Some(secs(9_999)))), (secs(1), secs(3_600)));
        let none = Deadlines { methods: Vec::new(), ..deadlines };
        assert_eq!(none.of("bash", None), secs(30));
    }
}
